#include "runtime/ir/programs.h"

#include <algorithm>
#include <numeric>

namespace hyperrun {

Job job_of(const Job& whole, const ProgramSpec& program) {
  Job job = whole;
  job.data = {whole.data.tasks, whole.data.tokenizer, ""};  // any job has a corpus; nobody reads this one
  job.programs.clear();
  job.reinforcement = {};
  job.supernode.devices = program.devices;
  for (Bytes* shared : {&job.supernode.pool, &job.supernode.flash})  // its devices' equal share
    *shared = *shared / whole.supernode.devices * program.devices;
  job.parallel = program.parallel;
  job.memory = program.memory;
  job.inference = program.inference;
  if (program.does == kTrains) return job;
  job.training.recompute.clear();
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
