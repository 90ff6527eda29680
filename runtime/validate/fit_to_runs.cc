#include "runtime/validate/fit_to_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/fit/rounded.h"
#include "runtime/validate/run_model.h"

namespace hyperrun {
namespace {

// The priors for an A100 and for PyTorch's kernel launches, before seeing a run; times in ns. A hop of a ring
// over the network takes 14 us in the model by which NCCL chooses its algorithms (src/graph/tuning.cc).
const std::array kUnknowns{
    MachineUnknown{{"device.products.ceiling", 0.85, 0.08, 0.5, 1},
                   [](Machine& m) -> Figure& { return m.products.ceiling; }},
    MachineUnknown{{"device.products.half", 128, 64, 0, 1024},
                   [](Machine& m) -> Figure& { return m.products.half; }},
    MachineUnknown{{"device.attention.ceiling", 0.6, 0.1, 0.2, 1},
                   [](Machine& m) -> Figure& { return m.attention.ceiling; }},
    MachineUnknown{{"device.memory.ceiling", 0.85, 0.08, 0.5, 1},
                   [](Machine& m) -> Figure& { return m.memory.ceiling; }},
    MachineUnknown{{"device.scores.forward", 16, 6, 4, 60},
                   [](Machine& m) -> Figure& { return m.scores.forward; }},
    MachineUnknown{{"device.scores.backward", 18, 6, 4, 60},
                   [](Machine& m) -> Figure& { return m.scores.backward; }},
    MachineUnknown{{"device.feeder.forward", 70e3, 40e3, 5e3, 300e3},
                   [](Machine& m) -> Figure& { return m.feeder.forward; }},
    MachineUnknown{{"device.feeder.backward", 15e3, 10e3, 3e3, 100e3},
                   [](Machine& m) -> Figure& { return m.feeder.backward; }},
    MachineUnknown{{"device.feeder.member", 20e3, 15e3, 0, 100e3},
                   [](Machine& m) -> Figure& { return m.feeder.member; }},
    MachineUnknown{{"device.feeder.micro_batch", 1e6, 1e6, 0, 10e6},
                   [](Machine& m) -> Figure& { return m.feeder.micro_batch; }},
    MachineUnknown{{"levels[1].efficiency.ceiling", 0.85, 0.08, 0.4, 1},
                   [](Machine& m) -> Figure& { return m.levels[1].efficiency.ceiling; }},
    MachineUnknown{{"levels[1].latency", 14e3, 5e3, 2e3, 150e3},
                   [](Machine& m) -> Figure& { return m.levels[1].latency; }},
};

Machine with(const Machine& machine, std::span<const double> values) {
  Machine m = machine;
  for (std::size_t i = 0; i < values.size(); ++i) kUnknowns[i].of(m).value = values[i];
  return m;
}

}  // namespace

std::span<const MachineUnknown> machine_unknowns() { return kUnknowns; }

FittedMachine fit_to_runs(const Machine& machine, std::span<const PublishedRun> runs,
                          const std::function<void(int, double)>& progress) {
  std::vector<const PublishedRun*> chosen;
  std::map<std::string, double> in_set;
  for (const PublishedRun& run : runs)
    if (run.calibrates) chosen.push_back(&run), ++in_set[run.set];
  if (machine.levels.size() != 2)
    throw Error(Code::kBadValue,
                fmt::format("profile \"{}\" has {} levels", machine.name, machine.levels.size()))
        .at("--profile")
        .legal("a profile of two levels: a node, and what joins nodes");
  if (chosen.empty())
    throw Error(Code::kBadValue, "no run is there to calibrate")
        .at("--runs")
        .fix("give some the use \"calibration\"");
  std::ranges::stable_sort(chosen, std::greater{}, &PublishedRun::work);
  std::vector<std::optional<RunModel>> models(chosen.size());
  parallel_for(chosen.size(), [&](std::size_t i) { models[i].emplace(*chosen[i]); });
  int evaluation = 0;
  const auto residuals = [&](std::span<const double> values) {
    const Machine m = with(machine, values);
    std::vector<double> r(chosen.size());
    parallel_for(chosen.size(), [&](std::size_t i) {
      r[i] = std::log(models[i]->milliseconds(m) / chosen[i]->milliseconds);
    });
    double mean = 0;
    for (std::size_t i = 0; i < r.size(); ++i) {
      mean += std::abs(std::expm1(r[i])) / static_cast<double>(r.size());
      r[i] *= std::sqrt(static_cast<double>(r.size()) / static_cast<double>(in_set.size()) /
                        in_set[chosen[i]->set]);
    }
    progress(++evaluation, mean);
    return r;
  };
  std::vector<Unknown> unknowns;
  for (const MachineUnknown& u : kUnknowns) unknowns.push_back(u.unknown);
  FittedMachine out{machine, least_squares(unknowns, residuals), static_cast<int>(chosen.size())};
  out.machine = with(machine, out.fitted.values);
  for (const MachineUnknown& u : kUnknowns) {
    Figure& figure = u.of(out.machine);
    figure = {rounded(figure.value), Evidence::kMeasured,
              fmt::format("fitted to {} published steps, hyperrun validate --calibrate", out.runs)};
  }
  return out;
}

}  // namespace hyperrun
