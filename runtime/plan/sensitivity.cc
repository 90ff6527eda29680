#include "runtime/plan/sensitivity.h"

#include <fmt/core.h>

namespace hyperrun {
namespace {

void scale(Figure& figure, double factor) { figure.value *= factor; }
void scale(Bytes& bytes, double factor) {
  bytes = Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.value) * factor));
}

// The machine of the job, copied so that it can be changed.
Machine& machine_in(SupernodeSpec& spec) {
  if (!spec.machine) spec.machine = machine_of(spec);
  return *spec.machine;
}

// Levels that the devices cross. A level is not crossed if one unit of the level below has all devices.
std::vector<MachineFigure> levels_of(const SupernodeSpec& spec) {
  const Machine machine = machine_of(spec);
  std::vector<MachineFigure> list;
  for (std::size_t l = 0; l < machine.levels.size(); ++l) {
    if (l > 0 && machine.levels[l - 1].devices >= spec.devices) break;
    list.push_back({"bandwidth of the " + machine.levels[l].name, [l](SupernodeSpec& s, double factor) {
                      Level& level = machine_in(s).levels[l];
                      scale(level.bandwidth, factor), scale(level.shared, factor);
                    }});
  }
  return list;
}

}  // namespace

std::vector<MachineFigure> machine_figures(const SupernodeSpec& spec) {
  std::vector<MachineFigure> list;
  if (spec.devices > 1) list = levels_of(spec);
  list.push_back({"rate of the cubes", [](SupernodeSpec& s, double factor) {
                    Machine& m = machine_in(s);
                    scale(m.cube.f32, factor), scale(m.cube.bf16, factor);
                  }});
  list.push_back(
      {"rate of the vectors", [](SupernodeSpec& s, double factor) { scale(machine_in(s).vector, factor); }});
  list.push_back({"bandwidth of HBM",
                  [](SupernodeSpec& s, double factor) { scale(machine_in(s).hbm_bandwidth, factor); }});
  list.push_back({"room of HBM", [](SupernodeSpec& s, double factor) {
                    scale(s.hbm, factor), scale(machine_in(s).hbm, factor);
                  }});
  if (spec.pool.value == 0 || !machine_of(spec).pool.exists()) return list;
  list.push_back({"bandwidth of the pool", [](SupernodeSpec& s, double factor) {
                    Storage& pool = machine_in(s).pool;
                    scale(pool.bandwidth, factor), scale(pool.shared, factor);
                  }});
  list.push_back({"room of the pool", [](SupernodeSpec& s, double factor) {
                    scale(s.pool, factor), scale(machine_in(s).pool.capacity, factor);
                  }});
  return list;
}

namespace {

// `place`: position in the list, for progress messages.
WhatIf what_if(const Job& base, const SimulatedCandidate& best, const MachineFigure& figure, double factor,
               const SensitivityOptions& options, const std::string& place) {
  Job job = base;
  figure.scale(job.supernode, factor);
  WhatIf what{.figure = figure.name, .factor = factor};
  // The old forecast does not hold for the new machine.
  what.present = what.best = without_plan(simulate_strategy(job, best.strategy, {}));
  if (factor <= 1 && what.present.simulated == best.simulated) return what;
  what.searched = true;
  const Search s = search(
      job, {.space = options.space,
            .leaders = options.leaders,
            .progress = within(options.progress, fmt::format("{} x {:g} ({})", figure.name, factor, place)),
            .of_each_kind = false});
  if (s.found() && (what.present.simulated == 0 || s.leaders.front().simulated < what.present.simulated))
    what.best = without_plan(s.leaders.front());
  return what;
}

}  // namespace

std::vector<WhatIf> sensitivity(const Job& base, const SimulatedCandidate& best,
                                const SensitivityOptions& options) {
  std::vector<WhatIf> list;
  const std::vector<MachineFigure> figures = machine_figures(base.supernode);
  const std::size_t all = figures.size() * options.factors.size();
  for (const MachineFigure& figure : figures)
    for (const double factor : options.factors)
      list.push_back(
          what_if(base, best, figure, factor, options, fmt::format("{} of {}", list.size() + 1, all)));
  return list;
}

}  // namespace hyperrun
