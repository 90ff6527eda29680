#include "runtime/offload/stream_time.h"

#include <algorithm>

namespace hyperrun {
namespace {

std::vector<std::int64_t> beginnings(const Timeline& timeline) {
  std::vector<std::int64_t> begins = timeline.begin;
  begins.push_back(timeline.length);
  for (std::size_t i = begins.size() - 1; i-- > 0;) begins[i] = std::min(begins[i], begins[i + 1]);
  return begins;
}

std::vector<std::int64_t> changes_of(std::vector<std::int64_t> values) {
  for (std::size_t i = values.size() - 1; i > 0; --i) values[i] -= values[i - 1];
  return values;
}

std::vector<std::int64_t> ends(const Timeline& timeline) {
  std::vector<std::int64_t> ends = timeline.end;
  ends.push_back(timeline.length);
  for (std::size_t i = 1; i < ends.size(); ++i) ends[i] = std::max(ends[i], ends[i - 1]);
  return ends;
}

std::vector<std::int64_t> negative(std::vector<std::int64_t> values) {
  for (std::int64_t& v : values) v = -v;
  return values;
}

}  // namespace

StreamTime::StreamTime(const Timeline& timeline)
    : begins_(beginnings(timeline)),
      stores_(changes_of(ends(timeline))),
      prefetches_(changes_of(negative(begins_))),
      unstored_(changes_of(begins_)) {}

bool StreamTime::has_for_store(std::int32_t from, std::int32_t by, std::int64_t lasts) const {
  // The maximum runs over the store after which the stream is busy without a break until `by`.
  return stores_.highest(0, from) + lasts <= unstored_.at(by);
}

std::int32_t StreamTime::first_for_store(std::int32_t from, std::int32_t first, std::int32_t last,
                                         std::int64_t lasts) const {
  return unstored_.first_above(first, last, stores_.highest(0, from) + lasts - 1);
}

std::int32_t StreamTime::last_for_prefetch(std::int32_t first, std::int32_t last, std::int32_t to,
                                           std::int64_t lasts) const {
  const auto end = static_cast<std::int32_t>(begins_.size()) - 1;
  return prefetches_.last_above(first, last, prefetches_.highest(to, end) + lasts - 1);
}

bool StreamTime::has_for_prefetch(std::int32_t since, std::int32_t to, std::int64_t lasts) const {
  // The maximum runs over the prefetch before which the stream is busy without a break from `since` on.
  const auto last = static_cast<std::int32_t>(begins_.size()) - 1;
  return prefetches_.highest(to, last) + lasts <= (since < 0 ? 0 : prefetches_.at(since));
}

void StreamTime::store(std::int32_t from, std::int64_t lasts) {
  const auto last = static_cast<std::int32_t>(begins_.size()) - 1;
  unstored_.add(from + 1, last, -lasts);
  stores_.add(from + 1, last, -lasts);
}

void StreamTime::prefetch(std::int32_t to, std::int64_t lasts) {
  prefetches_.add(to, static_cast<std::int32_t>(begins_.size()) - 1, lasts);
}

}  // namespace hyperrun
