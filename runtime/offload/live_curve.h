// Bytes that live in HBM at each instruction of a Program, as a tree: adding to a stretch and finding the
// highest point take time in the logarithm of its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hyperrun {

class LiveCurve {
 public:
  explicit LiveCurve(std::int32_t instrs);
  // `changes`: at each instruction, against the one before it.
  explicit LiveCurve(const std::vector<std::int64_t>& changes);
  // Anew, of as many instructions; what `changes` has beyond them is left out.
  void set(const std::vector<std::int64_t>& changes);

  // To instructions [first, last]; nothing where first > last.
  void add(std::int32_t first, std::int32_t last, std::int64_t bytes);
  std::int64_t highest() const { return nodes_[1].highest; }
  std::int32_t where() const;  // the first of the highest
  std::int64_t highest(std::int32_t first, std::int32_t last) const;
  std::int64_t at(std::int32_t instr) const;
  // The last one of [first, last] that is above `limit`; none: first - 1.
  std::int32_t last_above(std::int32_t first, std::int32_t last, std::int64_t limit) const;
  // The first one; none: last + 1.
  std::int32_t first_above(std::int32_t first, std::int32_t last, std::int64_t limit) const;

 private:
  struct Node {
    std::int64_t highest = 0, added = 0;  // `added` to all below, and in `highest`
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
  std::size_t size_ = 1;  // a power of two
  std::vector<Node> nodes_;
};

}  // namespace hyperrun
