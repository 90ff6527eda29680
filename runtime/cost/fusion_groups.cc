#include "runtime/cost/fusion_groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <variant>

namespace hyperrun {
namespace {

// Instructions of one kind can be chained.
enum class Chain : std::uint8_t { kNone, kElementwise, kNorm, kNormGrad };

struct {
  Chain operator()(const instr::Add&) const { return Chain::kElementwise; }
  Chain operator()(const instr::Gelu&) const { return Chain::kElementwise; }
  Chain operator()(const instr::GeluGrad&) const { return Chain::kElementwise; }
  Chain operator()(const instr::SwiGlu&) const { return Chain::kElementwise; }
  Chain operator()(const instr::SwiGluGrad&) const { return Chain::kElementwise; }
  Chain operator()(const instr::RowSums&) const { return Chain::kNorm; }
  Chain operator()(const instr::RowSquares&) const { return Chain::kNorm; }
  Chain operator()(const instr::Norm&) const { return Chain::kNorm; }
  Chain operator()(const instr::NormDots&) const { return Chain::kNormGrad; }
  Chain operator()(const instr::NormGrad&) const { return Chain::kNormGrad; }
  Chain operator()(const auto&) const { return Chain::kNone; }
} constexpr kChain;

// Instructions of equal sizes can run side by side. A product that adds to a result can run beside the one
// that wrote it.
using Size = std::tuple<std::size_t, bool, bool, std::int64_t, std::int64_t, std::int64_t>;
struct {
  std::optional<Size> operator()(const instr::Gemm& o) const {
    return Size{0, o.trans_a, o.trans_b, o.m, o.n, o.k};
  }
  std::optional<Size> operator()(const instr::Add& o) const {
    if (o.repeat == 1) return {};
    return Size{1, false, false, o.repeat, o.n, 0};
  }
  std::optional<Size> operator()(const instr::SumRows& o) const {
    return Size{2, false, o.accumulate, o.rows, o.width, 0};
  }
  std::optional<Size> operator()(const auto&) const { return {}; }
} constexpr kSize;

// Identifies instructions on weights or gradients, done once a step, that could work on one concatenated
// buffer.
using Bucket = std::tuple<std::size_t, DType, AxisList>;
struct {
  std::optional<Bucket> operator()(const instr::Cast&, DType from) const { return Bucket{0, from, {}}; }
  std::optional<Bucket> operator()(const instr::AdamW&, DType from) const { return Bucket{1, from, {}}; }
  std::optional<Bucket> operator()(const instr::Collective& c, DType from) const {
    if (c.kind != instr::CollectiveKind::kAllReduce) return {};
    return Bucket{2, from, c.axes};
  }
  std::optional<Bucket> operator()(const auto&, DType) const { return {}; }
} constexpr kBucket;

// What products have in common that can be joined: the kind of product, the operand that they share, and the
// sizes that are equal. `other` tells the data type of their results, or of their gradients: a product for
// routing, which has float32, is not joined to others. A weight's gradient is [out, in].
struct Joint {
  int kind;
  const Operand *shared, *other;
  std::int64_t first, second;
};
struct {
  std::optional<Joint> operator()(const instr::Gemm& o, const Instr& i) const {
    if (i.pass == Pass::kForward) return Joint{0, &i.in[0], &i.out[0], o.m, o.k};
    return o.trans_a ? Joint{1, &i.in[1], &i.in[0], o.n, o.k} : Joint{2, &i.out[0], &i.in[0], o.m, o.n};
  }
  std::optional<Joint> operator()(const instr::GroupedGemm& o, const Instr& i) const {
    return i.pass == Pass::kForward ? Joint{3, &i.in[0], &i.out[0], o.rows, o.k}
                                    : Joint{4, &i.out[0], &i.in[0], o.rows, o.n};
  }
  std::optional<Joint> operator()(const instr::GroupedOuter& o, const Instr& i) const {
    return Joint{5, &i.in[1], &i.in[0], o.rows, o.n};
  }
  std::optional<Joint> operator()(const auto&, const Instr&) const { return {}; }
} constexpr kJoint;

}  // namespace

class FusionGrouper {
 public:
  FusionGrouper(const Program& program, bool joins)
      : program_(program), joins_(joins), writer_(program.buffers.size(), -1) {
    groups_.of_.resize(program.instrs.size());
    groups_.instrs_.resize(program.instrs.size());
  }

  FusionGroups run() && {
    for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
      const Instr& instr = program_.instrs[i];
      const auto self = static_cast<std::int32_t>(i);
      const std::optional<Place> place = place_of(instr);
      if (instr.pass != Pass::kUpdate) begun_ = true;
      const std::optional<std::int32_t> bucket = bucket_of(instr, self);
      const std::int32_t group = bucket                                ? *bucket
                                 : place && lies_beside(*place, instr) ? open_[*place]
                                 : is_chained(instr)                   ? group_of(last_)
                                                                       : self;
      if (place) open_[*place] = group;
      groups_.of_[i] = group;
      groups_.instrs_[at(group)].push_back(self);
      for (const Operand& out : instr.out) writer_[out.buffer.index()] = group;
      if (instr.stream == StreamKind::kVector) last_ = self;
    }
    return std::move(groups_);
  }

 private:
  // Group that wrote the input, size, tile number. Instructions with equal places can run side by side.
  using Place = std::tuple<std::int32_t, Size, std::int32_t>;

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::int32_t group_of(std::int32_t instr) const { return groups_.of_[at(instr)]; }

  // Joined products have a place that tells nothing but what they share.
  std::optional<Place> joint_of(const Instr& instr) const {
    const auto joint = std::visit([&](const auto& op) { return kJoint(op, instr); }, instr.op);
    if (!joint) return {};
    const Operand& shared = *joint->shared;
    const std::size_t kind =
        3 + 2 * static_cast<std::size_t>(joint->kind) + (joint->other->dtype == DType::kBF16 ? 1 : 0);
    return Place(shared.buffer.value,
                 Size{kind, false, false, joint->first, joint->second, shared.offset.value},
                 tile_of(instr).index);
  }

  std::optional<Place> place_of(const Instr& instr) const {
    if (joins_)
      if (const auto joint = joint_of(instr)) return joint;
    const auto size = std::visit(kSize, instr.op);
    if (!size) return {};
    const std::int32_t made = writer_[instr.in[0].buffer.index()];
    return made < 0 ? std::nullopt : std::optional(Place(made, *size, tile_of(instr).index));
  }

  // Work before the first micro-batch and work behind the last are in different buckets.
  std::optional<std::int32_t> bucket_of(const Instr& instr, std::int32_t self) {
    if (instr.pass != Pass::kUpdate || instr.in.empty()) return {};
    const auto bucket = std::visit([&](const auto& op) { return kBucket(op, instr.in[0].dtype); }, instr.op);
    if (!bucket) return {};
    return buckets_.try_emplace({begun_, *bucket}, self).first->second;
  }

  // An instruction that reads the same inputs as a member repeats its work later, so it is a group of its
  // own.
  bool lies_beside(const Place& place, const Instr& instr) const {
    const auto found = open_.find(place);
    return found != open_.end() && std::ranges::none_of(groups_.instrs_[at(found->second)], [&](auto member) {
             return program_.instrs[at(member)].in == instr.in;
           });
  }

  bool is_chained(const Instr& instr) const {
    const Chain chain = std::visit(kChain, instr.op);
    if (chain == Chain::kNone || last_ < 0 || !instr.waits.empty() ||
        tile_of(instr) != tile_of(program_.instrs[at(last_)]))
      return false;
    if (!tile_of(instr).whole() && tile_of(instr).blocks == 0) return false;
    return std::visit(kChain, program_.instrs[at(last_)].op) == chain &&
           std::ranges::any_of(
               instr.in, [&](const Operand& in) { return writer_[in.buffer.index()] == group_of(last_); });
  }

  const Program& program_;
  bool joins_;
  FusionGroups groups_;
  std::vector<std::int32_t> writer_;  // by buffer: the group that wrote it last
  std::map<Place, std::int32_t> open_;
  std::map<std::pair<bool, Bucket>, std::int32_t> buckets_;
  bool begun_ = false;      // the first micro-batch has begun
  std::int32_t last_ = -1;  // the last instruction of the vector stream
};

FusionGroups fusion_groups_of(const Program& program, bool joins) {
  return FusionGrouper(program, joins).run();
}

}  // namespace hyperrun
