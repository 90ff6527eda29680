#include "runtime/offload/live_curve.h"

#include <algorithm>
#include <limits>

namespace hyperrun {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min() / 2;

}  // namespace

LiveCurve::LiveCurve(std::int32_t instrs) {
  while (size_ < instrs) size_ *= 2;
  nodes_.resize(2 * static_cast<std::size_t>(size_));
  add(instrs, size_ - 1, kLowest);  // what is beyond the last one is never the highest
}

void LiveCurve::add(std::int32_t first, std::int32_t last, std::int64_t bytes) {
  if (first <= last) add(1, 0, size_ - 1, first, last, bytes);
}

std::int32_t LiveCurve::where() const {
  std::size_t node = 1;
  while (node < static_cast<std::size_t>(size_))
    node = nodes_[2 * node].highest >= nodes_[2 * node + 1].highest ? 2 * node : 2 * node + 1;
  return static_cast<std::int32_t>(node) - size_;
}

std::int64_t LiveCurve::highest(std::int32_t first, std::int32_t last) const {
  return first <= last ? highest(1, 0, size_ - 1, first, last) : kLowest;
}

void LiveCurve::add(std::size_t node, std::int32_t from, std::int32_t to, std::int32_t first,
                    std::int32_t last, std::int64_t bytes) {
  Node& n = nodes_[node];
  if (first <= from && to <= last) {
    n.highest += bytes;
    n.added += bytes;
    return;
  }
  const std::int32_t middle = from + (to - from) / 2;
  if (first <= middle) add(2 * node, from, middle, first, last, bytes);
  if (last > middle) add(2 * node + 1, middle + 1, to, first, last, bytes);
  n.highest = n.added + std::max(nodes_[2 * node].highest, nodes_[2 * node + 1].highest);
}

std::int64_t LiveCurve::highest(std::size_t node, std::int32_t from, std::int32_t to, std::int32_t first,
                                std::int32_t last) const {
  const Node& n = nodes_[node];
  if (first <= from && to <= last) return n.highest;
  const std::int32_t middle = from + (to - from) / 2;
  std::int64_t most = kLowest;
  if (first <= middle) most = highest(2 * node, from, middle, first, last);
  if (last > middle) most = std::max(most, highest(2 * node + 1, middle + 1, to, first, last));
  return n.added + most;
}

}  // namespace hyperrun
