#include "tests/faults/worlds.h"

#include "runtime/faults/fault_trace.h"
#include "runtime/faults/policy.h"

namespace hyperrun::testing {

FaultedRun some_run() {
  return {.step = 10, .state_bytes = 6e12, .devices = 1024, .replica = 64, .smaller_speed = 1};
}

FaultModel some_faults() {
  FaultModel spec;
  spec.device = {.mtbf = 100'000 * 3600.0, .devices = 1, .repair = 36'000, .lasting = 0.5};
  spec.host = {.mtbf = 50'000 * 3600.0, .devices = 8, .repair = 36'000, .lasting = 1};
  spec.storage = {.bandwidth = 1e11};
  spec.delays = {.detection = 10, .reaction = 1800, .start = 20, .compile = 20, .join = 20};
  spec.copies = {.bandwidth = 10e9, .share = 0.1, .disk_every = 3600};
  spec.spares = 16;
  spec.horizon = 60 * 86400.0;
  spec.samples = 10;
  return spec;
}

FaultModel plain_faults(double mtbf, double save, double restart) {
  FaultModel spec;
  spec.software = {.mtbf = mtbf};
  spec.save = {.write_time = save, .read_time = restart};
  spec.delays = {.detection = 0, .reaction = 0, .start = 0, .compile = 0, .join = 0};
  return spec;
}

FaultOutcome outcome(const FaultModel& spec, const FaultedRun& run, std::string_view policy,
                     std::int64_t save_every, std::uint64_t seed) {
  const FaultWalk what{spec, *find_fault_policy(policy), run, costs_of(spec, run), save_every};
  return walk(what, draw_faults(spec, run.devices + spec.spares, seed));
}

double goodput(const FaultModel& spec, const FaultedRun& run, std::string_view policy,
               std::int64_t save_every) {
  double sum = 0;
  for (std::int32_t s = 0; s < spec.samples; ++s)
    sum += outcome(spec, run, policy, save_every, spec.seed + static_cast<std::uint64_t>(s)).useful;
  return sum / spec.samples / spec.horizon;
}

}  // namespace hyperrun::testing
