// An index of intervals of instructions: which of them cover an instruction? A segment tree, in which each
// interval is stored in the few nodes that it consists of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace hyperrun {

class IntervalIndex {
 public:
  static constexpr std::int32_t kNone = -1;

  explicit IntervalIndex(std::int32_t instrs)
      : leaves_(static_cast<std::size_t>(instrs)), heads_(2 * leaves_, kNone) {}

  // Adds [first, last]; nothing if first > last. Ids must not increase from one call to the next, so that
  // each node's list is sorted.
  void add(std::int32_t first, std::int32_t last, std::int32_t id) {
    if (first > last) return;
    auto l = static_cast<std::size_t>(first) + leaves_, r = static_cast<std::size_t>(last) + 1 + leaves_;
    for (; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) push(heads_[l++], id);
      if (r % 2 == 1) push(heads_[--r], id);
    }
  }
  // Calls visit(id) for each interval that covers the instruction.
  void each_at(std::int32_t instr, const auto& visit) const {
    for (std::size_t n = static_cast<std::size_t>(instr) + leaves_; n > 0; n /= 2)
      for (std::int32_t e = heads_[n]; e != kNone; e = entries_[static_cast<std::size_t>(e)].next)
        visit(entries_[static_cast<std::size_t>(e)].id);
  }
  // The answer of a visitor.
  enum class Look : std::uint8_t {
    kKeep,    // keep this id, go on
    kRemove,  // remove this id for ever, go on
    kStop,    // skip the remaining, higher ids of this node
  };
  // Calls look(id) for intervals that cover the instruction, in ascending order within each node.
  void look_at(std::int32_t instr, const auto& look) {
    for (std::size_t n = static_cast<std::size_t>(instr) + leaves_; n > 0; n /= 2) {
      for (std::int32_t* link = &heads_[n]; *link != kNone;) {
        Entry& entry = entries_[static_cast<std::size_t>(*link)];
        const Look answer = look(entry.id);
        if (answer == Look::kStop) break;
        if (answer == Look::kRemove)
          *link = entry.next;
        else
          link = &entry.next;
      }
    }
  }
  // The lowest free id that covers the instruction, or kNone. An id that is not free must never be free
  // again: it is removed.
  std::int32_t first_at(std::int32_t instr, const auto& is_free) {
    std::int32_t first = kNone;
    for (std::size_t n = static_cast<std::size_t>(instr) + leaves_; n > 0; n /= 2) {
      std::int32_t& head = heads_[n];
      while (head != kNone && !is_free(entries_[static_cast<std::size_t>(head)].id))
        head = entries_[static_cast<std::size_t>(head)].next;
      if (head == kNone) continue;
      const std::int32_t id = entries_[static_cast<std::size_t>(head)].id;
      if (first == kNone || id < first) first = id;
    }
    return first;
  }

 private:
  struct Entry {
    std::int32_t id, next;
  };

  void push(std::int32_t& head, std::int32_t id) {
    entries_.push_back({id, head});
    head = static_cast<std::int32_t>(entries_.size()) - 1;
  }

  std::size_t leaves_;
  std::vector<std::int32_t> heads_;  // by node: the first entry of its list
  std::vector<Entry> entries_;
};

}  // namespace hyperrun
