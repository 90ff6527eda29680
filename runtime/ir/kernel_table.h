// What share of its peak a kernel of a given shape was measured to reach.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

enum class KernelKind : std::uint8_t { kProduct, kGrouped, kAttention, kPermutation, kCrossEntropy };
inline constexpr std::size_t kKernels = 5;
std::string_view name(KernelKind k);

enum class KernelPass : std::uint8_t { kForward, kInputGradient, kWeightGradient, kBackward };
inline constexpr std::size_t kKernelPasses = 4;
std::string_view name(KernelPass p);

// The names of a kernel's sizes, in the order of KernelShape::sizes. Permutation and cross-entropy have none.
//
//   product     rows, in, out: [rows, in] by [in, out] in the forward pass, whatever the pass
//   grouped     groups, rows, in, out: the same of each group
//   attention   sequences, heads, kv_heads, head, value, sequence: causal
const std::vector<std::string_view>& size_names(KernelKind k);

struct KernelShape {
  KernelKind kernel{};
  KernelPass pass{};
  std::array<double, 6> sizes{};
  bool operator==(const KernelShape&) const = default;
};

// Multiplications of a shape, up to a constant factor of its kernel and pass.
double work(const KernelShape& shape);

struct KernelShare {
  KernelShape shape;
  bool any_shape = false;  // the share of shapes that are not in the table
  double share = 1;
  bool operator==(const KernelShare&) const = default;
};

// Copies share their rows.
class KernelTable {
 public:
  KernelTable() = default;
  // `file` and `source` tell where the rows come from.
  KernelTable(std::vector<KernelShare> rows, std::string file, std::string source);

  // The share of a kernel of this shape; nullopt if the table has nothing about its kernel and pass. For a
  // shape that was measured it is what was measured. Any other shape takes as long as at the share for any
  // shape, but no less than a measured one that is nowhere larger, and no more than one that is nowhere
  // smaller. So among shapes that were not measured a larger one never takes less time. If measurements
  // contradict that, the middle one of the three times holds.
  std::optional<double> share(const KernelShape& shape) const;

  bool empty() const { return rows_ == nullptr; }
  const std::string& file() const { return file_; }
  const std::string& source() const { return source_; }
  std::size_t size() const;
  bool operator==(const KernelTable& other) const;

 private:
  struct Rows;
  std::shared_ptr<const Rows> rows_;
  std::string file_, source_;
};

}  // namespace hyperrun
