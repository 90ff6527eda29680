// The data of the gap planner (policy.h): gaps between uses of a buffer, and candidates for eviction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

namespace hyperrun {

// The time between two uses of a buffer, or between a use and an end of the Program.
struct Gap {
  std::int32_t buffer = 0;
  std::int32_t after = 0;         // Eviction::after
  std::int32_t from = 0, to = 0;  // instructions of the two uses; -1 and the number of instructions: the ends
  std::int64_t bytes = 0;         // aligned
  std::int64_t transfer_ns = 0;   // duration of one transfer
  std::int64_t ready = 0;         // ns: the earliest time to leave
  std::int64_t needed = 0;        // ns: the latest time to be back
  bool fetches = true;            // the next use reads the bytes
  std::int32_t leaves = 0, returns = 0;  // Eviction::leaves and returns, while it is taken
  // Limits that squeezing sets, so that enough memory is free.
  std::int32_t latest_leave = 0, first_return = 0;
  // The buffer is absent between these if its transfers hold nothing up.
  std::int32_t stored = 0, fetched = 0;
  std::int32_t producer = -1;  // Eviction::producer, while it is taken
  bool taken = false;          // the buffer is evicted in this gap

  bool absent_at(std::int32_t i) const { return taken && leaves < i && i < returns; }
  bool covers(std::int32_t i) const { return from < i && i < to; }
};

// A possible eviction: one gap, or the two gaps of a state buffer at the ends of the Program.
struct Candidate {
  std::size_t first = 0, gaps = 1;  // range in the list of gaps
  // Time of absence divided by the cost in time: of two transfers, or of rematerialization.
  double worth = 0;
  bool offloads_state = false;  // the two gaps at the ends
  std::int64_t late = 0;        // ns by which transfers at the ends of the Program cannot be hidden
  // The transfers could not be hidden if all state that comes back sooner and leaves later were offloaded
  // too.
  bool crowded = false;
  std::int32_t producer = -1;  // Eviction::producer
  bool taken = false;

  // Sort key, best first: by worth in steps of 4 %, then by hidden transfers. With `hidden_first`, crowded
  // candidates come last.
  std::tuple<bool, double, std::int64_t, double> rank(bool hidden_first) const {
    return {hidden_first && crowded, -std::floor(16 * std::log2(std::max(worth, 1e-9))), late, -worth};
  }
};

// Sorts values by ascending key. The sort is stable, and each key is computed once.
template <class Key>
void sort_by(std::vector<std::size_t>& values, Key key_of) {
  std::vector<std::tuple<std::invoke_result_t<Key, std::size_t>, std::uint32_t, std::size_t>> keyed;
  keyed.reserve(values.size());
  for (const std::size_t value : values)
    keyed.emplace_back(key_of(value), static_cast<std::uint32_t>(keyed.size()), value);
  std::ranges::sort(keyed);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = std::get<2>(keyed[k]);
}

}  // namespace hyperrun
