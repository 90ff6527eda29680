#include <fmt/core.h>

#include <array>
#include <cmath>
#include <string>

#include "runtime/cost/cost.h"

namespace hyperrun {
namespace {

// A number with an SI prefix and unit.
std::string scaled(double value, const char* unit) {
  constexpr std::array kPrefixes{"", "k", "M", "G", "T", "P"};
  std::size_t p = 0;
  for (; p + 1 < kPrefixes.size() && value >= 1000; ++p) value /= 1000;
  return fmt::format("{:.4g} {}{}", value, kPrefixes[p], unit);
}

std::string time_of(double nanos) { return to_string(Nanos(std::llround(nanos))); }

// The evidence for a figure and its source.
std::string known(const Figure& f) {
  return fmt::format(" [{}{}{}]", name(f.evidence), f.source.empty() ? "" : ": ", f.source);
}

// Text about an efficiency and its evidence. Efficiency grows with the size towards its ceiling and reaches
// half of it at `half`.
std::string curve(double share, const Figure& ceiling, const Figure& half) {
  std::string text =
      fmt::format(" x {:.3g} efficiency (at most {:.3g}{}", share, ceiling.value, known(ceiling));
  if (half.value > 0) text += fmt::format(", half of it at {:.3g}{}", half.value, known(half));
  return text + ")";
}

std::string curve(double share, const Efficiency& of) { return curve(share, of.ceiling, of.half); }

// Text about a share that the machine's table of kernels has for an instruction.
std::string measured(double share, const KernelTable& table) {
  return fmt::format(" x {:.3g} of such a kernel [measured: {}, {}]", share, table.file(), table.source());
}

std::string link_line(const char* where, const CollectiveCost::Link& link) {
  const Level& level = *link.level;
  std::string line = fmt::format("    {}: level {}, {} for a device{}", where, level.name,
                                 scaled(link.rate, "B/s"), known(level.bandwidth));
  if (level.shared.value > 0)
    line += fmt::format(", of {} for its unit{}", scaled(level.shared.value, "B/s"), known(level.shared));
  if (link.efficiency < 1) line += curve(link.efficiency, *link.ceiling, *link.half);
  return line + fmt::format("; a message {}{}\n", time_of(link.cost.alpha), known(level.latency));
}

}  // namespace

std::string explain(const ComputeCost& c) {
  std::string text = fmt::format("    launch {}{}\n", time_of(c.launch->value), known(*c.launch));
  if (c.flops > 0) {
    text += fmt::format("    arithmetic {}: {} / ({}{}", time_of(c.arithmetic()), scaled(c.flops, "FLOP"),
                        scaled(c.rate->value, "FLOP/s"), known(*c.rate));
    if (c.tiling.share < 1)
      text += fmt::format(" x {:.3g} of tiles of {:g} x {:g}{}", c.tiling.share, c.tiling.rows,
                          c.tiling.columns, known(c.tiles->rows));
    if (c.depth < 1)
      text +=
          c.table != nullptr && !c.by_memory ? measured(c.depth, *c.table) : curve(c.depth, *c.depth_curve);
    text += ")\n";
  }
  if (c.bytes > 0) {
    text += fmt::format("    memory {}: {} / ({}{}", time_of(c.traffic()), scaled(c.bytes, "B"),
                        scaled(c.bandwidth->value, "B/s"), known(*c.bandwidth));
    if (c.memory < 1)
      text +=
          c.table != nullptr && c.by_memory ? measured(c.memory, *c.table) : curve(c.memory, *c.memory_curve);
    text += ")\n";
  }
  if (c.score_bytes > 0)
    text += fmt::format("    scores {}: {} written and read at the same rate\n", time_of(c.score_traffic()),
                        scaled(c.score_bytes, "B"));
  if (c.tiling.parts > 1)
    text += fmt::format("    parts {}: depth split in {:g}, {} written and read at the same rate\n",
                        time_of(c.partial_traffic()), c.tiling.parts, scaled(c.tiling.partial_bytes, "B"));
  return text + fmt::format("    in all {}: launch, the longer of arithmetic and memory{}\n",
                            time_of(c.nanos()),
                            c.score_bytes > 0    ? ", and scores"
                            : c.tiling.parts > 1 ? ", and parts"
                                                 : "");
}

std::string explain(const CollectiveCost& c) {
  const bool one_host = c.algorithm == Algorithm::kOneShot || c.algorithm == Algorithm::kDirect;
  std::string text =
      fmt::format("    launch {}{}\n    {} among {} devices, {}: {}\n", time_of(c.launch->value),
                  known(*c.launch), name(c.algorithm), c.devices, scaled(c.bytes, "B"), time_of(c.transfer));
  if (one_host || c.algorithm == Algorithm::kHierarchical) text += link_line("inside a host", c.inside);
  if (!one_host) text += link_line("between hosts", c.between);
  if (c.summing != nullptr)
    text += fmt::format("    summing: {:g} bytes of HBM for each that arrives, at {}{}\n", kReduceTraffic,
                        scaled(c.summing->value, "B/s"), known(*c.summing));
  return text + fmt::format("    in all {}\n", time_of(c.nanos()));
}

std::string explain(const TransferCost& c) {
  const Storage& storage = *c.storage;
  std::string text = fmt::format("    {}: {} at {} for a device{}", name(c.tier), scaled(c.bytes, "B"),
                                 scaled(c.rate, "B/s"), known(storage.bandwidth));
  if (storage.shared.value > 0)
    text += fmt::format(", of {} for {:.0f} of them{}", scaled(storage.shared.value, "B/s"),
                        storage.sharers.value, known(storage.shared));
  if (c.efficiency < 1) text += curve(c.efficiency, storage.efficiency);
  return text + fmt::format("; besides {}{}\n", time_of(storage.latency.value), known(storage.latency));
}

}  // namespace hyperrun
