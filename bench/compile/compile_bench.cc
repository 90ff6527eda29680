// The time and memory that jobs take to compile: a small job, a layer-parallel one, and the shape of
// Llama-3-405B in 16 stages with 128 micro-batches.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "runtime/compile/compile.h"
#include "runtime/ir/pipeline.h"

namespace hyperrun {
namespace {

Job decoder(int layers, int hidden, int heads, int kv_heads, int ffn, int vocab, int sequence) {
  Job job;
  job.model = {"llama", layers, hidden, heads, kv_heads, hidden / heads, ffn, vocab, sequence};
  job.training.lr = 1e-3;
  return job;
}

Job on(Job job, std::vector<MeshAxis> mesh, std::vector<std::string> presets, int micro_batches) {
  job.supernode.devices = 1;
  for (const MeshAxis& axis : mesh) {
    job.supernode.devices *= axis.size;
    if (axis.name != "pp") continue;
    job.parallel.pipeline.axis = "pp";
    job.parallel.pipeline.stages = even_stages(axis.size, 1, job.model.layers);
  }
  job.parallel.mesh = std::move(mesh);
  job.parallel.presets = std::move(presets);
  job.training.micro_batches = job.training.batch = micro_batches;
  for (const MeshAxis& axis : job.parallel.mesh)
    if (axis.name == "dp") job.training.batch *= axis.size;
  return job;
}

void measure(const char* what, const Job& job) {
  const auto begin = std::chrono::steady_clock::now();
  const Plan plan = compile(job).plan;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::size_t instrs = 0;
  for (const Role& role : plan.roles)
    for (const Program& p : role.programs) instrs += p.instrs.size();
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf("%-44s %4zu roles %8zu instructions %7.2f s, at most %5.2f GiB so far\n", what,
              plan.roles.size(), instrs, seconds, static_cast<double>(use.ru_maxrss) / (1 << 20));
}

}  // namespace
}  // namespace hyperrun

int main() {
  using namespace hyperrun;
  measure("4 layers, dp 2 x tp 2",
          on(decoder(4, 256, 8, 4, 704, 4096, 256), {{"dp", 2}, {"tp", 2}}, {"dp", "tp", "sp"}, 1));
  measure("32 layers, dp 4 x tp 2 zero3, 4 micro-batches",
          on(decoder(32, 4096, 32, 8, 14336, 128256, 8192), {{"dp", 4}, {"tp", 2}},
             {"dp", "tp", "sp", "zero3"}, 4));
  measure("32 layers, pp 4 x tp 2, 16 micro-batches",
          on(decoder(32, 4096, 32, 8, 14336, 128256, 8192), {{"pp", 4}, {"tp", 2}}, {"tp", "sp"}, 16));
  measure("126 layers, pp 16 x tp 8, 128 micro-batches",
          on(decoder(126, 16384, 128, 8, 53248, 128256, 8192), {{"pp", 16}, {"tp", 8}}, {"tp", "sp"}, 128));
}
