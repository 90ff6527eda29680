#include "memory/pool_placement.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

std::vector<std::vector<int>> ranks_by_host(const Topology& topology) {
  std::vector<std::vector<int>> ranks(at(topology.hosts()));
  for (int r = 0; r < topology.size(); ++r) ranks[at(topology.host_of[at(r)])].push_back(r);
  return ranks;
}

Bytes sum(std::span<const Bytes> list) {
  Bytes total{};
  for (const Bytes b : list) total += b;
  return total;
}

// The bytes that each of `ranks` gives up so that the host keeps at most its share: equal amounts, as far as
// each has that much. In order of ascending parts, each gives an equal part of the remaining amount.
void give_up(std::vector<int> ranks, std::span<const Bytes> parts, Bytes excess, std::vector<Bytes>& given) {
  std::ranges::stable_sort(ranks, {}, [&](int r) { return parts[at(r)]; });
  auto left = static_cast<std::int64_t>(ranks.size());
  for (const int r : ranks) {
    const std::int64_t even = (excess.value + left - 1) / left;
    --left;
    given[at(r)] = std::min(parts[at(r)], Bytes(even));
    excess -= given[at(r)];
  }
}

class Placer {
 public:
  Placer(const Topology& topology, Bytes budget, std::span<const Bytes> parts)
      : ranks_(ranks_by_host(topology)),
        parts_(parts),
        room_(pool_shares(topology, budget)),
        given_(parts.size()),
        guests_(parts.size()) {}

  PoolPlacement place() {
    result_.parts.resize(parts_.size());
    result_.segments.resize(parts_.size());
    for (std::size_t h = 0; h < ranks_.size(); ++h) keep_local(h);
    for (std::size_t d = 0; d < parts_.size(); ++d) spill(d);
    return std::move(result_);
  }

 private:
  void keep_local(std::size_t host) {
    Bytes need{};
    for (const int r : ranks_[host]) need += parts_[at(r)];
    if (need > room_[host]) give_up(ranks_[host], parts_, need - room_[host], given_);
    for (const int r : ranks_[host]) {
      const Bytes own = parts_[at(r)] - given_[at(r)];
      result_.segments[at(r)] = own;
      room_[host] -= own;
      if (own.value > 0) result_.parts[at(r)].push_back({r, Bytes(0), own});
    }
  }

  // A host that spills has no room left, so no byte returns to it.
  void spill(std::size_t device) {
    for (Bytes left = given_[device]; left.value > 0;) {
      const auto host = static_cast<std::size_t>(std::ranges::max_element(room_) - room_.begin());
      const Bytes taken = std::min(left, room_[host]);
      HR_CHECK(taken.value > 0, "the parts are larger than the pool");
      const int rank = *std::ranges::min_element(ranks_[host], {}, [&](int r) { return guests_[at(r)]; });
      result_.parts[device].push_back({rank, result_.segments[at(rank)], taken});
      result_.segments[at(rank)] += taken;
      guests_[at(rank)] += taken;
      room_[host] -= taken;
      left -= taken;
    }
  }

  const std::vector<std::vector<int>> ranks_;
  const std::span<const Bytes> parts_;
  std::vector<Bytes> room_;            // by host
  std::vector<Bytes> given_, guests_;  // by rank: bytes that it gave to others and holds for others
  PoolPlacement result_;
};

}  // namespace

bool PoolPlacement::spills() const {
  for (std::size_t d = 0; d < parts.size(); ++d)
    if (elsewhere(static_cast<int>(d)).value > 0) return true;
  return false;
}

Bytes PoolPlacement::elsewhere(int device) const {
  Bytes total{};
  for (const PoolExtent& e : parts[at(device)])
    if (e.rank != device) total += e.bytes;
  return total;
}

std::vector<Bytes> pool_shares(const Topology& topology, Bytes budget) {
  const std::int64_t all = topology.size();
  const auto up_to = [&](std::int64_t ranks) {  // the share of the first `ranks` ranks, without overflow
    return budget.value / all * ranks + budget.value % all * ranks / all;
  };
  std::vector<Bytes> shares;
  std::int64_t before = 0;
  for (const auto& ranks : ranks_by_host(topology)) {
    const std::int64_t after = before + std::ssize(ranks);
    shares.emplace_back(up_to(after) - up_to(before));
    before = after;
  }
  return shares;
}

PoolPlacement place_pool(const Topology& topology, Bytes budget, std::span<const Bytes> parts) {
  HR_CHECK(std::ssize(parts) == topology.size());
  HR_CHECK(sum(parts) <= budget, std::to_string(sum(parts).value) + " of " + std::to_string(budget.value));
  return Placer(topology, budget, parts).place();
}

Bytes pool_without_spill(const Topology& topology, std::span<const Bytes> parts) {
  const std::int64_t all = topology.size();
  std::int64_t enough = sum(parts).value;
  for (const auto& ranks : ranks_by_host(topology)) {
    std::int64_t need = 0;
    for (const int r : ranks) need += parts[at(r)].value;
    const std::int64_t own = std::ssize(ranks);
    // Rounding can take up to two bytes from a host's exact share.
    enough = std::max(enough, need > 0 ? (need + 1) * all / own + 1 : 0);
  }
  return Bytes(enough);
}

}  // namespace hyperrun
