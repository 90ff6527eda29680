// Stretches of instructions, found by what they cover: each is kept in the few nodes of a tree that make it
// up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace hyperrun {

class Stretches {
 public:
  static constexpr std::int32_t kNone = -1;

  explicit Stretches(std::int32_t instrs)
      : leaves_(static_cast<std::size_t>(instrs)), heads_(2 * leaves_, kNone) {}

  // Nothing where first > last. No `id` is greater than one that was added before it.
  void add(std::int32_t first, std::int32_t last, std::int32_t id) {
    if (first > last) return;
    auto l = static_cast<std::size_t>(first) + leaves_, r = static_cast<std::size_t>(last) + 1 + leaves_;
    for (; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) push(heads_[l++], id);
      if (r % 2 == 1) push(heads_[--r], id);
    }
  }
  void each_at(std::int32_t instr, const auto& visit) const {
    for (std::size_t n = static_cast<std::size_t>(instr) + leaves_; n > 0; n /= 2)
      for (std::int32_t e = heads_[n]; e != kNone; e = entries_[static_cast<std::size_t>(e)].next)
        visit(entries_[static_cast<std::size_t>(e)].id);
  }
  // What is to become of one that was looked at: it stays, it goes for ever, or it stays and so do those
  // above it that are kept with it, which nobody needs to look at.
  enum class Look : std::uint8_t { kStays, kGoes, kEnough };
  // Of each of a few lists the lowest first.
  void look_at(std::int32_t instr, const auto& look) {
    for (std::size_t n = static_cast<std::size_t>(instr) + leaves_; n > 0; n /= 2) {
      for (std::int32_t* link = &heads_[n]; *link != kNone;) {
        Entry& entry = entries_[static_cast<std::size_t>(*link)];
        const Look it = look(entry.id);
        if (it == Look::kEnough) break;
        if (it == Look::kGoes)
          *link = entry.next;
        else
          link = &entry.next;
      }
    }
  }
  // The lowest of those that are still free, kNone without any; what is not free never is again.
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
