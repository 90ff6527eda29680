// The live bytes in HBM at each instruction of a Program. A segment tree: adding to a range and finding the
// highest point take logarithmic time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hyperrun {

class LiveCurve {
 public:
  explicit LiveCurve(std::int32_t instrs);
  // `changes`: the difference at each instruction to the one before it.
  explicit LiveCurve(const std::vector<std::int64_t>& changes);
  // Replaces the curve by one of the same length. Changes beyond that length are ignored.
  void set(const std::vector<std::int64_t>& changes);

  // Adds to instructions [first, last]. Nothing happens if first > last.
  void add(std::int32_t first, std::int32_t last, std::int64_t bytes);
  std::int64_t highest() const { return nodes_[1].highest; }
  // The first instruction with the highest value.
  std::int32_t where() const;
  std::int64_t highest(std::int32_t first, std::int32_t last) const;
  std::int64_t at(std::int32_t instr) const;
  // The last instruction of [first, last] with more than `limit`; first - 1 if there is none.
  std::int32_t last_above(std::int32_t first, std::int32_t last, std::int64_t limit) const;
  // The first instruction of [first, last] with more than `limit`; last + 1 if there is none.
  std::int32_t first_above(std::int32_t first, std::int32_t last, std::int64_t limit) const;

 private:
  struct Node {
    std::int64_t highest = 0;  // of the subtree, with `added`
    std::int64_t added = 0;    // to every leaf below
  };
  std::size_t leaf(std::int32_t instr) const { return static_cast<std::size_t>(instr) + size_; }
  void update(std::size_t node);
  void update_above(std::size_t node);
  std::int64_t highest(std::size_t node, std::int32_t from, std::int32_t to, std::int32_t first,
                       std::int32_t last) const;
  std::int32_t last_above(std::size_t node, std::int32_t from, std::int32_t to, std::int32_t first,
                          std::int32_t last, std::int64_t limit) const;
  std::int32_t first_above(std::size_t node, std::int32_t from, std::int32_t to, std::int32_t first,
                           std::int32_t last, std::int64_t limit) const;

  std::size_t instrs_;
  std::size_t size_ = 1;  // leaves: a power of two
  std::vector<Node> nodes_;
};

}  // namespace hyperrun
