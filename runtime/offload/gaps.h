// What plans by gaps are made of (policy.h), and in which order they are taken.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

namespace hyperrun {

// Between two uses of a buffer, or between one and an end of the Program.
struct Gap {
  std::int32_t buffer = 0, after = 0;
  std::int32_t from = 0, to = 0;      // instructions of the uses; -1 and the number of instructions: the ends
  std::int64_t bytes = 0, lasts = 0;  // of a transfer, ns
  std::int64_t ready = 0, needed = 0;  // ns: may leave from, must be back by
  bool fetches = true;
  std::int32_t leaves = 0, returns = 0;             // while it is taken
  std::int32_t latest_leave = 0, first_return = 0;  // what memory asks
  std::int32_t stored = 0, fetched = 0;             // in time: away behind this and before that
  std::int32_t maker = -1;                          // Absence::maker, while it is taken
  bool taken = false;

  bool absent_at(std::int32_t i) const { return taken && leaves < i && i < returns; }
  bool covers(std::int32_t i) const { return from < i && i < to; }
};

// Gaps that are taken together: one, or both that a home has at the ends.
struct Candidate {
  std::size_t first = 0, gaps = 1;
  double worth = 0;  // time that it is away over the time of its transfers, or of making it again
  bool home = false;
  std::int64_t late = 0;    // ns that its transfers at the ends of the Program stick out of it
  bool crowded = false;     // they would if all did that have to come sooner and go later
  std::int32_t maker = -1;  // Absence::maker
  bool taken = false;

  // By worth; of those that are much the same, within some 4 %, those first that hide. Or what hides first.
  std::tuple<bool, double, std::int64_t, double> rank(bool hiding_first) const {
    return {hiding_first && crowded, -std::floor(16 * std::log2(std::max(worth, 1e-9))), late, -worth};
  }
};

// Of values, those of the lowest keys first; equal ones stay as they are.
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
