// The speed of the simulator: Llama-3-405B's shape in 16 stages with 128 micro-batches, on more and more
// devices that are alike, which are simulated once.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "runtime/compile/compile.h"
#include "runtime/ir/pipeline.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

constexpr int kStages = 16, kTensor = 8, kMicroBatches = 128;

Job job_on(int replicas) {
  Job job;
  job.model = {"llama", 126, 16384, 128, 8, 128, 53248, 128256, 8192};
  job.supernode.devices = kStages * replicas * kTensor;
  job.parallel.mesh = {{"pp", kStages}, {"dp", replicas}, {"tp", kTensor}};
  job.parallel.presets = {"dp", "tp", "sp", "zero1"};
  job.parallel.pipeline.axis = "pp";
  job.parallel.pipeline.stages = even_stages(kStages, 1, job.model.layers);
  job.training.micro_batches = kMicroBatches;
  job.training.batch = kMicroBatches * replicas;
  job.training.precision = kBfloat16;
  return job;
}

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(int replicas) {
  const Job job = job_on(replicas);
  Plan plan;
  SimResult result;
  const double compiling = seconds_of([&] { plan = compile(job).plan; });
  const double simulating = seconds_of([&] {
    result = simulate(plan, "train", job.supernode, Topology::uniform(kStages * replicas, kTensor));
  });
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf(
      "%7d devices, %3zu classes: %8lld instructions in %5.2f s, %5.2f million a second "
      "(compiled in %5.2f s; at most %5.2f GiB so far)\n",
      job.supernode.devices, result.classes.size(), static_cast<long long>(result.simulated_instrs),
      simulating, static_cast<double>(result.simulated_instrs) / simulating / 1e6, compiling,
      static_cast<double>(use.ru_maxrss) / (1 << 20));
}

}  // namespace
}  // namespace hyperrun

int main() {
  for (const int replicas : {1, 16, 128, 780}) hyperrun::measure(replicas);
}
