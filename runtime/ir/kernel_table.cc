#include "runtime/ir/kernel_table.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace hyperrun {

std::string_view name(KernelKind k) {
  static constexpr std::array<std::string_view, kKernels> kNames{"product", "grouped", "attention",
                                                                 "permutation", "cross_entropy"};
  return kNames[static_cast<std::size_t>(k)];
}

std::string_view name(KernelPass p) {
  static constexpr std::array<std::string_view, kKernelPasses> kNames{"forward", "input_gradient",
                                                                      "weight_gradient", "backward"};
  return kNames[static_cast<std::size_t>(p)];
}

const std::vector<std::string_view>& size_names(KernelKind k) {
  static const std::array<std::vector<std::string_view>, kKernels> kNames{
      {{"rows", "in", "out"},
       {"groups", "rows", "in", "out"},
       {"sequences", "heads", "kv_heads", "head", "value", "sequence"},
       {},
       {}}};
  return kNames[static_cast<std::size_t>(k)];
}

double work(const KernelShape& shape) {
  const auto& s = shape.sizes;
  if (shape.kernel == KernelKind::kProduct) return s[0] * s[1] * s[2];
  if (shape.kernel == KernelKind::kGrouped) return s[0] * s[1] * s[2] * s[3];
  if (shape.kernel != KernelKind::kAttention) return 1;
  // The backward pass has three products of the heads' depth and two of the values'.
  const bool forward = shape.pass == KernelPass::kForward;
  return s[0] * s[1] * s[5] * s[5] * ((forward ? 1 : 3) * s[3] + (forward ? 1 : 2) * s[4]);
}

struct KernelTable::Rows {
  struct Measured {
    std::array<double, 6> sizes;
    double share, time;
  };
  struct Group {
    std::optional<double> any;
    std::vector<Measured> measured;
  };
  std::vector<KernelShare> all;
  std::map<std::pair<KernelKind, KernelPass>, Group> groups;
};

KernelTable::KernelTable(std::vector<KernelShare> rows, std::string file, std::string source)
    : file_(std::move(file)), source_(std::move(source)) {
  auto own = std::make_shared<Rows>();
  for (const KernelShare& r : rows) {
    Rows::Group& group = own->groups[{r.shape.kernel, r.shape.pass}];
    if (r.any_shape)
      group.any = r.share;
    else
      group.measured.push_back({r.shape.sizes, r.share, work(r.shape) / r.share});
  }
  own->all = std::move(rows);
  rows_ = std::move(own);
}

std::optional<double> KernelTable::share(const KernelShape& shape) const {
  if (empty()) return std::nullopt;
  const auto found = rows_->groups.find({shape.kernel, shape.pass});
  if (found == rows_->groups.end()) return std::nullopt;
  const Rows::Group& group = found->second;
  double least = 0, most = std::numeric_limits<double>::infinity();
  for (const Rows::Measured& m : group.measured) {
    if (m.sizes == shape.sizes) return m.share;
    bool smaller = true, larger = true;
    for (std::size_t i = 0; i < m.sizes.size(); ++i)
      smaller = smaller && m.sizes[i] <= shape.sizes[i], larger = larger && m.sizes[i] >= shape.sizes[i];
    if (smaller) least = std::max(least, m.time);
    if (larger) most = std::min(most, m.time);
  }
  if (!group.any) return std::nullopt;
  const double of_any = work(shape) / *group.any;
  const double middle = std::max(std::min(of_any, most), std::min(std::max(of_any, most), least));
  return work(shape) / middle;
}

std::size_t KernelTable::size() const { return empty() ? 0 : rows_->all.size(); }

bool KernelTable::operator==(const KernelTable& other) const {
  if (file_ != other.file_ || source_ != other.source_ || empty() != other.empty()) return false;
  return rows_ == other.rows_ || rows_->all == other.rows_->all;
}

}  // namespace hyperrun
