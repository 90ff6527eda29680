#include "runtime/forecast/simulated_report.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/run/device_use.h"

namespace hyperrun {
namespace {

// The breakdown of the step. Equal devices share a row.
std::vector<StepParts> parts_of(const SimResult& result) {
  std::vector<StepParts> list;
  for (const Breakdown& b : result.parts)
    list.push_back({-1, 0, b.compute, b.communication, b.transfer, b.bubble, b.optimizer});
  for (std::size_t d = 0; d < result.class_of.size(); ++d) {
    StepParts& parts = list[static_cast<std::size_t>(result.class_of[d])];
    if (parts.devices++ == 0) parts.first = static_cast<std::int32_t>(d);
  }
  return list;
}

// The bytes that cross each level, and the mean share of a device's bandwidth that they use over the step.
std::vector<LevelUse> levels_of(const SimResult& result, const Machine& machine) {
  std::vector<LevelUse> list;
  for (std::size_t l = 0; l < machine.levels.size(); ++l) {
    double all = 0;
    Bytes most{};
    for (const std::vector<Bytes>& device : result.links) {
      all += static_cast<double>(device[l].value);
      most = std::max(most, device[l]);
    }
    const double mean = all / static_cast<double>(result.links.size());
    const double seconds = static_cast<double>(result.makespan.value) * 1e-9;
    list.push_back({machine.levels[l].name, Bytes(std::llround(mean)), most, Bytes(std::llround(all)),
                    mean / (seconds * machine.levels[l].bandwidth.value)});
  }
  return list;
}

}  // namespace

RunReport simulated_report(const Job& job, const Plan& plan, const JobForecast& forecast) {
  const std::int64_t steps = std::max(1, job.training.steps);
  RunReport report;
  report.job = job.name;
  report.machine = "simulated";
  report.parameters = parameters(plan);
  report.tokens = steps * job.training.batch * job.model.sequence;
  report.time = forecast.step * steps;
  for (std::int64_t s = 0; s < steps; ++s) report.steps.push_back({s + 1, {}, {}, forecast.step});
  std::vector<DeviceReport> planned;  // by role
  for (const Role& role : plan.roles) planned.push_back(planned_use(job, role));
  for (int d = 0; d < job.supernode.devices; ++d) {
    InvocationStats stats = forecast.train.stats(d);
    stats.high_water = forecast.high_water[plan.role_of(d)];
    stats.live_peak = Bytes(0);  // it covers the step alone, and another Program may be fuller
    DeviceReport device = planned[plan.role_of(d)];
    device.device = d;
    device.host = "simulated";
    for (std::size_t s = 0; s < kStreams; ++s)
      device.streams.push_back({std::string(name(static_cast<StreamKind>(s))), {}});
    add_steps(stats, device, steps);
    for (CategoryUse& use : device.tiers.front().categories) use.executed = use.planned;
    report.devices.push_back(std::move(device));
  }
  return report;
}

SimulatedUse simulated_use(const JobForecast& f, const Machine& machine) {
  return {f.step,      f.tokens_per_second, f.mfu, f.hfu, parts_of(f.train), levels_of(f.train, machine),
          std::nullopt};
}

}  // namespace hyperrun
