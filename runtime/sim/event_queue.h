// The queue of events in virtual time. Events of one moment come in the order in which they were added, so
// that every simulation is repeatable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hyperrun {

template <class What>
class EventQueue {
 public:
  struct Entry {
    std::int64_t at;
    std::uint64_t number;
    What what;
  };

  void add(std::int64_t at, What what) {
    heap_.push_back({at, number_++, what});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  bool empty() const { return heap_.empty(); }
  const Entry& first() const { return heap_.front(); }

  Entry take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Entry entry = heap_.back();
    heap_.pop_back();
    return entry;
  }

 private:
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.number > b.number;
  }

  std::vector<Entry> heap_;
  std::uint64_t number_ = 0;
};

}  // namespace hyperrun
