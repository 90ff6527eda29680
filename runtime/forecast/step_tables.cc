#include "runtime/forecast/step_tables.h"

#include <fmt/core.h>

#include <cmath>

#include "runtime/report/table.h"

namespace hyperrun {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

}  // namespace

std::string step_table(const SimulatedUse& use, const std::string& machine) {
  Table table({left("simulated, " + machine), right("")});
  table.row({"step", to_string(use.step)});
  table.row({"tokens/s", with_separators(std::llround(use.tokens_per_second))});
  table.row({"model flops utilisation", percent(use.mfu)});
  table.row({"hardware flops utilisation", percent(use.hfu)});
  return table.str();
}

std::string breakdown_table(const SimulatedUse& use) {
  Table table({left("devices"), right("compute"), right("exposed comm"), right("exposed transfer"),
               right("bubble"), right("optimizer")});
  const auto share = [&](Nanos part) {
    return percent(static_cast<double>(part.value) / static_cast<double>(use.step.value));
  };
  const auto mean = [&](Nanos StepParts::*part) {
    double sum = 0, devices = 0;
    for (const StepParts& p : use.parts) {
      sum += static_cast<double>((p.*part).value) * p.devices;
      devices += p.devices;
    }
    return share(Nanos(std::llround(sum / devices)));
  };
  if (use.parts.size() > 1)
    table.row({"mean of all", mean(&StepParts::compute), mean(&StepParts::communication),
               mean(&StepParts::transfer), mean(&StepParts::bubble), mean(&StepParts::optimizer)});
  for (const StepParts& p : use.parts) {
    const std::string others = p.devices > 1 ? " and " + with_separators(p.devices - 1) + " like it" : "";
    table.row({fmt::format("{}", p.first) + others, share(p.compute), share(p.communication),
               share(p.transfer), share(p.bubble), share(p.optimizer)});
  }
  return table.str("  ");
}

std::string levels_table(const SimulatedUse& use) {
  Table table({left("level"), right("bytes a device, mean"), right("most"), right("all devices"),
               right("share of the link, mean")});
  for (const LevelUse& l : use.levels)
    table.row({l.level, to_string(l.mean), to_string(l.most), to_string(l.all), percent(l.share)});
  return table.str("  ");
}

}  // namespace hyperrun
