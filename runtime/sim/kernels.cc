#include "runtime/sim/kernels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <variant>

namespace hyperrun {
namespace {

// What may be chained with its like.
enum class Chain : std::uint8_t { kNone, kElementwise, kNorm, kNormGrad, kCast, kUpdate };

// Whatever tensors these are of.
bool takes_many(Chain chain) { return chain == Chain::kCast || chain == Chain::kUpdate; }

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
  Chain operator()(const instr::Cast&) const { return Chain::kCast; }
  Chain operator()(const instr::AdamW&) const { return Chain::kUpdate; }
  Chain operator()(const auto&) const { return Chain::kNone; }
} constexpr kChain;

// Sizes of what may lie side by side with its like. A product that adds to its result lies beside the one
// that made it.
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

}  // namespace

class Grouping {
 public:
  explicit Grouping(const Program& program) : program_(program), maker_(program.buffers.size(), -1) {
    kernels_.of_.resize(program.instrs.size());
    kernels_.instrs_.resize(program.instrs.size());
  }

  Kernels run() && {
    for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
      const Instr& instr = program_.instrs[i];
      const auto self = static_cast<std::int32_t>(i);
      const std::optional<Place> place = place_of(instr);
      const std::int32_t kernel = place && lies_beside(*place, instr) ? open_[*place]
                                  : is_chained(instr)                 ? kernel_of(last_)
                                                                      : self;
      if (place) open_[*place] = kernel;
      kernels_.of_[i] = kernel;
      kernels_.instrs_[at(kernel)].push_back(self);
      for (const Operand& out : instr.out) maker_[out.buffer.index()] = kernel;
      if (instr.stream == StreamKind::kVector) last_ = self;
    }
    return std::move(kernels_);
  }

 private:
  using Place = std::pair<std::int32_t, Size>;  // beside what reads results of this kernel, of this size

  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::int32_t kernel_of(std::int32_t instr) const { return kernels_.of_[at(instr)]; }

  std::optional<Place> place_of(const Instr& instr) const {
    const auto size = std::visit(kSize, instr.op);
    if (!size) return {};
    const std::int32_t made = maker_[instr.in[0].buffer.index()];
    return made < 0 ? std::nullopt : std::optional(Place(made, *size));
  }

  // One that reads what another of the kernel has read does the same again, later.
  bool lies_beside(const Place& place, const Instr& instr) const {
    const auto found = open_.find(place);
    return found != open_.end() &&
           std::ranges::none_of(kernels_.instrs_[at(found->second)],
                                [&](auto member) { return program_.instrs[at(member)].in == instr.in; });
  }

  bool is_chained(const Instr& instr) const {
    const Chain chain = std::visit(kChain, instr.op);
    if (chain == Chain::kNone || last_ < 0 || !instr.waits.empty()) return false;
    if (std::visit(kChain, program_.instrs[at(last_)].op) != chain) return false;
    return takes_many(chain) || std::ranges::any_of(instr.in, [&](const Operand& in) {
             return maker_[in.buffer.index()] == kernel_of(last_);
           });
  }

  const Program& program_;
  Kernels kernels_;
  std::vector<std::int32_t> maker_;  // by buffer: the kernel that wrote it last
  std::map<Place, std::int32_t> open_;
  std::int32_t last_ = -1;  // of the vector stream
};

Kernels kernels_of(const Program& program) { return Grouping(program).run(); }

}  // namespace hyperrun
