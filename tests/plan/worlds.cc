#include "tests/plan/worlds.h"

#include "runtime/spec/job_reader.h"
#include "runtime/spec/profile_reader.h"
#include "runtime/spec/software_reader.h"

namespace hyperrun::testing {

Job planned_llama(int devices, int layers, int batch) {
  const std::string text = R"(
    supernode { devices: )" +
                           std::to_string(devices) +
                           R"( profile: "matrix384" }
    model { layers: )" + std::to_string(layers) +
                           R"( hidden: 2048 heads: 16 kv_heads: 8 ffn: 5632 vocab: 32000 sequence: 2048 }
    parallel { mesh { name: "dp" size: )" +
                           std::to_string(devices) + R"( } presets: ["dp"] }
    data { corpus: "none.txt" }
    training { steps: 1 batch: )" +
                           std::to_string(batch) + R"( lr: 1e-4 precision: "bfloat16" })";
  return parse_job(text, "planned").job;
}

Job planned_with_software(int devices, int layers, int batch) {
  Job job = planned_llama(devices, layers, batch);
  job.supernode.machine = load_profile("b200", "");
  job.supernode.machine->software = load_software("megatron", "");
  return job;
}

Job planned_tiny(int devices, int layers, int batch, int sequence, Bytes hbm) {
  const auto n = [](auto number) { return std::to_string(number); };
  const std::string text = "supernode { devices: " + n(devices) + " hbm: \"" + n(hbm.value) +
                           " B\" pool: \"" + n(8 * hbm.value) + " B\" }\nmodel { layers: " + n(layers) +
                           " hidden: 128 heads: 4 kv_heads: 2 vocab: 512 sequence: " + n(sequence) +
                           " }\ndata { corpus: \"none.txt\" }\ntraining { steps: 1 batch: " + n(batch) +
                           " lr: 1e-3 }";
  return parse_job(text, "planned", JobUse::kToBePlanned).job;
}

Job planned_mixture(int devices, int layers, int batch) {
  Job job = planned_llama(devices, layers, batch);
  job.model.experts.count = 8;
  job.model.experts.choices = 2;
  job.model.experts.ffn = 1408;
  job.model.experts.dense_layers = 1;
  job.model.experts.capacity = {1.25, 0};
  return job;
}

}  // namespace hyperrun::testing
