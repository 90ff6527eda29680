#include "runtime/offload/live_curve.h"

#include <algorithm>
#include <limits>

namespace hyperrun {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min() / 2;

}  // namespace

LiveCurve::LiveCurve(std::int32_t instrs)
    : LiveCurve(std::vector<std::int64_t>(static_cast<std::size_t>(instrs))) {}

LiveCurve::LiveCurve(const std::vector<std::int64_t>& changes) : instrs_(changes.size()) {
  while (size_ < changes.size()) size_ *= 2;
  nodes_.resize(2 * size_);
  set(changes);
}

void LiveCurve::set(const std::vector<std::int64_t>& changes) {
  std::int64_t live = 0;
  for (std::size_t i = 0; i < size_; ++i)  // padding leaves are never the highest
    nodes_[size_ + i] = {i < instrs_ ? live += changes[i] : kLowest, 0};
  for (std::size_t node = size_ - 1; node > 0; --node) {
    nodes_[node].added = 0;
    update(node);
  }
}

void LiveCurve::update(std::size_t node) {
  nodes_[node].highest =
      nodes_[node].added + std::max(nodes_[2 * node].highest, nodes_[2 * node + 1].highest);
}

void LiveCurve::update_above(std::size_t node) {
  for (node /= 2; node > 0; node /= 2) update(node);
}

void LiveCurve::add(std::int32_t first, std::int32_t last, std::int64_t bytes) {
  if (first > last) return;
  const auto add_to = [&](std::size_t node) {
    nodes_[node].highest += bytes;
    nodes_[node].added += bytes;
  };
  for (std::size_t l = leaf(first), r = leaf(last) + 1; l < r; l /= 2, r /= 2) {
    if (l % 2 == 1) add_to(l++);
    if (r % 2 == 1) add_to(--r);
  }
  update_above(leaf(first));
  update_above(leaf(last));
}

std::int32_t LiveCurve::where() const {
  std::size_t node = 1;
  while (node < size_)
    node = nodes_[2 * node].highest >= nodes_[2 * node + 1].highest ? 2 * node : 2 * node + 1;
  return static_cast<std::int32_t>(node - size_);
}

std::int64_t LiveCurve::at(std::int32_t instr) const {
  std::int64_t bytes = nodes_[leaf(instr)].highest;
  for (std::size_t node = leaf(instr) / 2; node > 0; node /= 2) bytes += nodes_[node].added;
  return bytes;
}

std::int64_t LiveCurve::highest(std::int32_t first, std::int32_t last) const {
  return first <= last ? highest(1, 0, static_cast<std::int32_t>(size_) - 1, first, last) : kLowest;
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

std::int32_t LiveCurve::last_above(std::int32_t first, std::int32_t last, std::int64_t limit) const {
  if (first > last) return first - 1;
  return last_above(1, 0, static_cast<std::int32_t>(size_) - 1, first, last, limit);
}

std::int32_t LiveCurve::last_above(std::size_t node, std::int32_t from, std::int32_t to, std::int32_t first,
                                   std::int32_t last, std::int64_t limit) const {
  const Node& n = nodes_[node];
  if (n.highest <= limit || from > last || to < first) return first - 1;
  if (from == to) return from;
  const std::int32_t middle = from + (to - from) / 2;
  const std::int32_t right = last_above(2 * node + 1, middle + 1, to, first, last, limit - n.added);
  return right >= first ? right : last_above(2 * node, from, middle, first, last, limit - n.added);
}

std::int32_t LiveCurve::first_above(std::int32_t first, std::int32_t last, std::int64_t limit) const {
  if (first > last) return last + 1;
  return first_above(1, 0, static_cast<std::int32_t>(size_) - 1, first, last, limit);
}

std::int32_t LiveCurve::first_above(std::size_t node, std::int32_t from, std::int32_t to, std::int32_t first,
                                    std::int32_t last, std::int64_t limit) const {
  const Node& n = nodes_[node];
  if (n.highest <= limit || from > last || to < first) return last + 1;
  if (from == to) return from;
  const std::int32_t middle = from + (to - from) / 2;
  const std::int32_t left = first_above(2 * node, from, middle, first, last, limit - n.added);
  return left <= last ? left : first_above(2 * node + 1, middle + 1, to, first, last, limit - n.added);
}

}  // namespace hyperrun
