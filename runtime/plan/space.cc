#include "runtime/plan/space.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/base/divisors.h"
#include "runtime/base/error.h"
#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

// Chooses sizes axis by axis; the data axis takes the devices that are left.
class Shapes {
 public:
  Shapes(const Job& job, const Space& space) : job_(job), space_(space) {}

  std::vector<Strategy> all() {
    choose(0, job_.supernode.devices);
    return std::move(list_);
  }

 private:
  static constexpr std::array<PlanAxis, kPlanAxes - 1> kChosen{PlanAxis::kTensor,  PlanAxis::kTensorY,
                                                               PlanAxis::kContext, PlanAxis::kRing,
                                                               PlanAxis::kExpert,  PlanAxis::kPipeline};

  // Upper limits of an axis that hold for every strategy.
  bool within(PlanAxis a, std::int32_t size) const {
    const ModelSpec& m = job_.model;
    switch (a) {
      case PlanAxis::kTensor: return m.kv_heads % size == 0;
      case PlanAxis::kTensorY:
        return size == 1 || (space_.two_dimensions && s_[PlanAxis::kTensor] > 1 && m.hidden % size == 0 &&
                             m.sequence % size == 0 && divides_heads(s_[PlanAxis::kTensor] * size));
      case PlanAxis::kContext:
        return size == 1 || (space_.ulysses && m.sequence % size == 0 &&
                             divides_heads(s_[PlanAxis::kTensor] * s_[PlanAxis::kTensorY] * size) &&
                             (space_.ulysses_beside || s_[PlanAxis::kTensor] == 1));
      case PlanAxis::kRing:
        return size == 1 || (space_.ring && size <= kMostRing && m.sequence % (2 * size) == 0);
      case PlanAxis::kExpert: return size == 1 || (m.experts.count > 0 && m.experts.count % size == 0);
      case PlanAxis::kPipeline:
        return size == 1 || (size <= m.layers && (space_.ulysses_beside || s_[PlanAxis::kContext] == 1));
      case PlanAxis::kData: return true;
    }
    return true;
  }

  // Devices that do not split the heads would repeat attention.
  bool divides_heads(std::int32_t devices) const { return job_.model.heads % devices == 0; }

  void choose(std::size_t axis, std::int32_t left) {
    if (axis == kChosen.size()) {
      s_[PlanAxis::kData] = left;
      if (job_.training.batch % s_.replicas() == 0 && meets(space_.only, s_, DecidedAt::kShape))
        list_.push_back(s_);
      return;
    }
    for (const std::int64_t divisor : divisors(left)) {
      const auto size = static_cast<std::int32_t>(divisor);
      if (!within(kChosen[axis], size)) continue;
      s_[kChosen[axis]] = size;
      choose(axis + 1, left / size);
    }
    s_[kChosen[axis]] = 1;
  }

  const Job& job_;
  const Space& space_;
  Strategy s_;
  std::vector<Strategy> list_;
};

class StrategyEnumerator {
 public:
  StrategyEnumerator(const Job& job, const Space& space, const Strategy& shape,
                     const std::function<void(const Strategy&)>& visit)
      : job_(job), space_(space), visit_(visit), s_(shape) {}

  void run() {
    for (const PlanExperts e : {PlanExperts::kRepeated, PlanExperts::kWidth, PlanExperts::kSpread}) {
      if (!may(e)) continue;
      s_.experts = e;
      for (const std::int64_t samples : divisors(job_.training.batch / s_.replicas()))
        for (const PlanRecompute r :
             {PlanRecompute::kNone, PlanRecompute::kSelective, PlanRecompute::kFull}) {
          s_.samples = static_cast<std::int32_t>(samples), s_.recompute = r;
          choose_zero();
        }
    }
  }

 private:
  bool may(PlanExperts e) const {
    if (e == PlanExperts::kRepeated) return true;
    const std::int32_t count = job_.model.experts.count, tensor = s_[PlanAxis::kTensor];
    if (count == 0 || tensor == 1 || s_[PlanAxis::kTensorY] > 1) return false;
    if (e == PlanExperts::kWidth) return space_.expert_width;
    // Its decode passes have one token, which cannot be split.
    if (job_.run.generate.tokens > 0) return false;
    return space_.spread_experts && count % (s_[PlanAxis::kExpert] * tensor) == 0;
  }

  void choose_zero() {
    const bool pipes = s_[PlanAxis::kPipeline] > 1;
    const std::int32_t most = s_.zero_devices() == 1 ? 0
                              : pipes                ? space_.most_zero_in_pipes
                                                     : space_.most_zero;
    for (s_.zero = 0; s_.zero <= most; ++s_.zero) choose_schedule(pipes);
    s_.zero = 0;
  }

  void choose_schedule(bool pipes) {
    s_.schedule = PlanSchedule::k1f1b;
    visit_(s_);
    if (!pipes || micro_batches(s_, job_.training.batch) == 1) return;
    s_.schedule = PlanSchedule::kGpipe;
    visit_(s_);
    if (space_.zero_bubble) {
      s_.schedule = PlanSchedule::kZeroBubble;
      visit_(s_);
    }
    if (!fills_rounds()) return;
    s_.schedule = PlanSchedule::kInterleaved;
    const std::int32_t most = std::min(kMostChunks, job_.model.layers / s_[PlanAxis::kPipeline]);
    for (s_.chunks = 2; space_.interleaved && s_.chunks <= most; ++s_.chunks) visit_(s_);
    s_.chunks = 1;
  }

  // An interleaved pipeline runs rounds of as many micro-batches as it has devices. A last round that is not
  // full can deadlock on messages, so the compiler refuses it.
  bool fills_rounds() const {
    const std::int32_t devices = s_[PlanAxis::kPipeline];
    const auto count = micro_batches(s_, job_.training.batch);
    return count < devices || count % devices == 0;
  }

  const Job& job_;
  const Space& space_;
  const std::function<void(const Strategy&)>& visit_;
  Strategy s_;
};

}  // namespace

const std::vector<Space>& spaces() {
  static const std::vector<Space> kSpaces = [] {
    Space all{.name = "all", .meaning = "every dimension that a strategy has here"};
    Space megatron{.name = "megatron",
                   .meaning =
                       "tensor, sequence, context, data, expert and pipeline parallelism, 1F1B or "
                       "interleaved, with ZeRO 1 at most; neither two-dimensional tensor parallelism, a "
                       "zero bubble nor memory beyond HBM"};
    megatron.two_dimensions = megatron.offload = megatron.zero_bubble = false;
    megatron.most_zero = megatron.most_zero_in_pipes = 1;
    Space deepspeed{.name = "deepspeed",
                    .meaning =
                        "ZeRO with tensor, expert and pipeline parallelism, whose pipelines take ZeRO 1 "
                        "at most and have one stage a device, or with Ulysses; memory beyond HBM"};
    deepspeed.two_dimensions = deepspeed.ring = deepspeed.ulysses_beside = deepspeed.interleaved =
        deepspeed.zero_bubble = false;
    deepspeed.expert_width = deepspeed.spread_experts = false;
    deepspeed.most_zero_in_pipes = 1;
    return std::vector<Space>{all, megatron, deepspeed};
  }();
  return kSpaces;
}

const Space& space_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Space& space : spaces()) {
    if (space.name == name) return space;
    names.push_back(space.name);
  }
  throw Error(Code::kUsage, fmt::format("there is no space \"{}\"", name))
      .at("--space")
      .legal(joined(names))
      .fix("name one of these, or leave it out: all is searched then");
}

std::vector<Strategy> shapes_of(const Job& job, const Space& space) { return Shapes(job, space).all(); }

void each_of_shape(const Job& job, const Space& space, const Strategy& shape,
                   const std::function<void(const Strategy&)>& visit) {
  StrategyEnumerator(job, space, shape, visit).run();
}

void each_strategy(const Job& job, const Space& space, const std::function<void(const Strategy&)>& visit) {
  for (const Strategy& shape : shapes_of(job, space)) each_of_shape(job, space, shape, visit);
}

bool Space::may_offload() const {
  Strategy moves;
  moves.memory = PlanMemory::kHyperOffload;
  return offload && std::ranges::all_of(only, [&](const Constraint& c) {
           return dimensions()[c.dimension].key != "memory" || c.met_by(moves);
         });
}

bool can_express(const Space& space, const Strategy& s) {
  const bool pipes = s[PlanAxis::kPipeline] > 1;
  return (space.two_dimensions || s[PlanAxis::kTensorY] == 1) && (space.ring || s[PlanAxis::kRing] == 1) &&
         (space.ulysses || s[PlanAxis::kContext] == 1) &&
         (space.ulysses_beside || s[PlanAxis::kContext] == 1 || (s[PlanAxis::kTensor] == 1 && !pipes)) &&
         (space.expert_width || s.experts != PlanExperts::kWidth) &&
         (space.spread_experts || s.experts != PlanExperts::kSpread) &&
         (space.interleaved || s.schedule != PlanSchedule::kInterleaved) &&
         (space.zero_bubble || s.schedule != PlanSchedule::kZeroBubble) &&
         (space.uneven || (s.first_stage_shortfall == 0 && s.last_stage_shortfall == 0)) &&
         (space.offload || s.memory == PlanMemory::kNone) &&
         s.zero <= (pipes ? space.most_zero_in_pipes : space.most_zero);
}

bool has(const Space& space, const Job& job, const Strategy& strategy) {
  if (!can_express(space, strategy)) return false;
  if (strategy.extra_recompute_layers > 0 && strategy.memory != PlanMemory::kNone) return false;
  if (!meets(space.only, strategy)) return false;
  Strategy even = strategy;
  even.order = Strategy{}.order;
  even.first_stage_shortfall = even.last_stage_shortfall = even.extra_recompute_layers = 0;
  even.memory = PlanMemory::kNone;
  bool found = false;
  for (const Strategy& shape : shapes_of(job, space))
    if (shape.sizes == even.sizes)
      each_of_shape(job, space, shape, [&](const Strategy& s) { found = found || s == even; });
  return found;
}

std::vector<Strategy> orders_of(const Strategy& strategy) {
  std::vector<PlanAxis> used, unused;
  for (const PlanAxis a : strategy.order) (strategy[a] > 1 ? used : unused).push_back(a);
  std::ranges::sort(used);
  std::vector<Strategy> list;
  do {
    Strategy s = strategy;
    std::ranges::copy(used, std::ranges::copy(unused, s.order.begin()).out);
    list.push_back(s);
  } while (std::ranges::next_permutation(used).found);
  return list;
}

}  // namespace hyperrun
