#include "runtime/ir/programs.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hyperrun {
namespace {

// The job of an encoder. Its batch is set later, when the number of replicas is known
// (runtime/compose/omni.h).
Job encoder_job(Job job, const EncoderSpec& e) {
  const std::int32_t text = job.model.hidden;
  job.model = {};
  job.model.name = "encoder";
  job.model.layers = e.layers;
  job.model.hidden = e.hidden;
  job.model.heads = job.model.kv_heads = std::max(1, e.heads);
  job.model.head_dim = e.hidden / std::max(1, e.heads);
  job.model.ffn = e.ffn;
  job.model.vocab = 257;  // the least legal; an encoder has no vocabulary
  job.model.sequence = e.tokens;
  job.model.inputs = e.inputs();
  job.model.features = text;
  job.training.batch = e.items * job.supernode.devices;
  job.training.micro_batches = 1;
  return job;
}

}  // namespace

Job job_of(const Job& whole, const ProgramSpec& program) {
  Job job = whole;
  // Every job needs a corpus, but nobody reads this one.
  job.data = {whole.data.tasks + whole.data.samples, whole.data.tokenizer, "", ""};
  job.programs.clear();
  job.reinforcement = {};
  job.media = {};
  job.supernode.devices = program.devices;
  for (Bytes* shared : {&job.supernode.pool, &job.supernode.flash})  // an equal share for each device
    *shared = *shared / whole.supernode.devices * program.devices;
  job.parallel = program.parallel;
  job.memory = program.memory;
  job.inference = program.inference;
  if (program.does == kTrains) return job;
  job.training.recompute.clear();
  if (program.does == kEncodes) return encoder_job(std::move(job), program.encoder);
  if (program.does == kScores) return job;
  job.training.batch = program.devices;
  job.training.micro_batches = 1;
  job.run.generate.tokens = whole.reinforcement.tokens;
  job.run.generate.temperature = whole.training.policy.temperature;
  return job;
}

std::vector<int> ranks_of(const ProgramSpec& program) {
  std::vector<int> ranks(static_cast<std::size_t>(program.devices));
  std::iota(ranks.begin(), ranks.end(), program.first_device);
  return ranks;
}

const ProgramSpec* find_program(const Job& job, std::string_view does) {
  const auto found = std::ranges::find(job.programs, does, &ProgramSpec::does);
  return found == job.programs.end() ? nullptr : &*found;
}

}  // namespace hyperrun
