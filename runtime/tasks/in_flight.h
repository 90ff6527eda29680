// A list of entries with increasing ids. An entry is forgotten once it and all before it are finished.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

namespace hyperrun::tasks {

template <class Entry>
class InFlight {
 public:
  std::int64_t add(Entry entry) {
    slots_.push_back({std::move(entry), false});
    return next() - 1;
  }

  std::int64_t first() const { return first_; }
  std::int64_t next() const { return first_ + static_cast<std::int64_t>(slots_.size()); }
  bool has(std::int64_t id) const { return id >= first_ && id < next() && !slot(id).finished; }
  Entry& at(std::int64_t id) { return slots_.at(static_cast<std::size_t>(id - first_)).entry; }
  const Entry& at(std::int64_t id) const { return slot(id).entry; }

  void finish(std::int64_t id) {
    slots_.at(static_cast<std::size_t>(id - first_)).finished = true;
    for (; !slots_.empty() && slots_.front().finished; ++first_) slots_.pop_front();
  }

 private:
  struct Slot {
    Entry entry;
    bool finished;
  };

  const Slot& slot(std::int64_t id) const { return slots_.at(static_cast<std::size_t>(id - first_)); }

  std::deque<Slot> slots_;
  std::int64_t first_ = 0;
};

}  // namespace hyperrun::tasks
