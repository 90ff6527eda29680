#include "runtime/faults/costs.h"

#include <algorithm>

namespace hyperrun {
namespace {

double time_on_disk(const FaultModel& spec, const FaultedRun& run) {
  const FaultStorage& s = spec.storage;
  double rate = s.bandwidth;
  if (s.device_bandwidth > 0) rate = std::min(rate, s.device_bandwidth * run.devices);
  return rate > 0 ? run.state_bytes / rate : 0;
}

SaveCost disk_cost(const FaultModel& spec, const FaultedRun& run) {
  const double write = spec.save.write_time > 0 ? spec.save.write_time : time_on_disk(spec, run);
  if (!spec.save.beside) return {write, write};
  const double snapshot = spec.save.snapshot > 0 ? run.state_bytes / (spec.save.snapshot * run.devices) : 0;
  return {snapshot + spec.save.share * write, snapshot + write};
}

}  // namespace

FaultCosts costs_of(const FaultModel& spec, const FaultedRun& run) {
  FaultCosts costs{.step = run.step, .disk = disk_cost(spec, run)};
  costs.read = spec.save.read_time > 0 ? spec.save.read_time : time_on_disk(spec, run);
  const double copying = run.state_bytes / (spec.copies.bandwidth * run.devices);
  costs.copy = {spec.copies.share * copying, copying};
  costs.fetch = copying;
  return costs;
}

double speed_with(const FaultedRun& run, std::int32_t devices) {
  if (devices >= run.devices) return 1;
  if (!run.speeds.empty()) return run.speeds.at(static_cast<std::size_t>(devices));
  const double share = static_cast<double>(devices) / run.devices;
  const double part = std::min(1.0, (1 - share) / (1 - run.smaller_share));
  return std::min(1.0, share * (1 + (run.smaller_speed - 1) * part));
}

}  // namespace hyperrun
