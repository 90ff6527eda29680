#include <array>
#include <cmath>
#include <string>

#include "runtime/base/format.h"
#include "runtime/cost/cost.h"

namespace hyperrun {
namespace {

// With a prefix of the thousands.
std::string scaled(double value, const char* unit) {
  constexpr std::array kPrefixes{"", "k", "M", "G", "T", "P"};
  std::size_t p = 0;
  for (; p + 1 < kPrefixes.size() && value >= 1000; ++p) value /= 1000;
  return format("%.4g %s%s", value, kPrefixes[p], unit);
}

std::string time_of(double nanos) { return to_string(Nanos(std::llround(nanos))); }

std::string known(const Figure& f) {
  return " [" + std::string(name(f.evidence)) + (f.source.empty() ? "" : ": " + f.source) + "]";
}

// How a share of the peak is known: it grows with the size towards its ceiling, half of which it has at
// `half`.
std::string curve(double share, const Efficiency& of) {
  std::string text = format(" x %.3g efficiency (at most %.3g", share, of.ceiling.value) + known(of.ceiling);
  if (of.half.value > 0) text += format(", half of it at %.3g", of.half.value) + known(of.half);
  return text + ")";
}

std::string link_line(const char* where, const CollectiveCost::Link& link) {
  std::string line = format("    %s: level %s, ", where, link.level->name.c_str()) +
                     scaled(link.rate, "B/s") + " for a device" + known(link.level->bandwidth);
  if (link.level->shared.value > 0)
    line += ", of " + scaled(link.level->shared.value, "B/s") + " for its unit" + known(link.level->shared);
  if (link.efficiency < 1) line += curve(link.efficiency, link.level->efficiency);
  return line + "; a message " + time_of(link.cost.alpha) + known(link.level->latency) + "\n";
}

}  // namespace

std::string explain(const ComputeCost& c) {
  std::string text = "    launch " + time_of(c.launch->value) + known(*c.launch) + "\n";
  if (c.flops > 0) {
    text += "    arithmetic " + time_of(c.arithmetic()) + ": " + scaled(c.flops, "FLOP") + " / (" +
            scaled(c.rate->value, "FLOP/s") + known(*c.rate);
    if (c.tiling.share < 1)
      text += format(" x %.3g of tiles of %g x %g", c.tiling.share, c.tiling.rows, c.tiling.columns) +
              known(c.tiles->rows);
    if (c.depth < 1) text += curve(c.depth, *c.depth_curve);
    text += ")\n";
  }
  if (c.bytes > 0) {
    text += "    memory " + time_of(c.traffic()) + ": " + scaled(c.bytes, "B") + " / (" +
            scaled(c.bandwidth->value, "B/s") + known(*c.bandwidth);
    if (c.memory < 1) text += curve(c.memory, *c.memory_curve);
    text += ")\n";
  }
  if (c.score_bytes > 0)
    text += "    scores " + time_of(c.score_traffic()) + ": " + scaled(c.score_bytes, "B") +
            " written and read at the same rate\n";
  if (c.tiling.parts > 1)
    text += "    parts " + time_of(c.partial_traffic()) + ": depth split in " + format("%g", c.tiling.parts) +
            ", " + scaled(c.tiling.partial_bytes, "B") + " written and read at the same rate\n";
  return text + "    in all " + time_of(c.nanos()) + ": launch, the longer of arithmetic and memory" +
         (c.score_bytes > 0    ? ", and scores\n"
          : c.tiling.parts > 1 ? ", and parts\n"
                               : "\n");
}

std::string explain(const CollectiveCost& c) {
  const bool one_host = c.algorithm == Algorithm::kOneShot || c.algorithm == Algorithm::kDirect;
  std::string text = "    launch " + time_of(c.launch->value) + known(*c.launch) + "\n    " +
                     std::string(name(c.algorithm)) + format(" among %d devices, ", c.devices) +
                     scaled(c.bytes, "B") + ": " + time_of(c.transfer) + "\n";
  if (one_host || c.algorithm == Algorithm::kHierarchical) text += link_line("inside a host", c.inside);
  if (!one_host) text += link_line("between hosts", c.between);
  if (c.summing != nullptr)
    text += format("    summing: %g bytes of HBM for each that arrives, at ", kReduceTraffic) +
            scaled(c.summing->value, "B/s") + known(*c.summing) + "\n";
  return text + "    in all " + time_of(c.nanos()) + "\n";
}

std::string explain(const TransferCost& c) {
  std::string text = "    " + std::string(name(c.tier)) + ": " + scaled(c.bytes, "B") + " at " +
                     scaled(c.rate, "B/s") + " for a device" + known(c.storage->bandwidth);
  if (c.storage->shared.value > 0)
    text += ", of " + scaled(c.storage->shared.value, "B/s") +
            format(" for %.0f of them", c.storage->sharers.value) + known(c.storage->shared);
  if (c.efficiency < 1) text += curve(c.efficiency, c.storage->efficiency);
  return text + "; besides " + time_of(c.storage->latency.value) + known(c.storage->latency) + "\n";
}

}  // namespace hyperrun
