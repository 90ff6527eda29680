#include "runtime/plan/dimensions.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hyperrun {
namespace {

std::string number(std::int32_t n) { return std::to_string(n); }

template <PlanAxis kAxis>
std::int32_t size_of_axis(const Strategy& s) {
  return s[kAxis];
}

// "none", "none to selective", ...
std::string recompute_of(std::int32_t value) {
  const auto recompute = static_cast<PlanRecompute>(value / 2);
  const std::string text(name(recompute));
  return value % 2 == 0 ? text : text + " to " + std::string(name(*stronger_recompute(recompute)));
}

// Value of a strategy without a pipeline, which has neither schedule nor chunks.
constexpr std::int32_t kNoPipeline = -1;
template <class Value>
std::int32_t of_pipeline(const Strategy& s, Value value) {
  return s[PlanAxis::kPipeline] > 1 ? static_cast<std::int32_t>(value) : kNoPipeline;
}

std::string axis_words(std::int32_t value) {
  constexpr std::array<std::string_view, kPlanAxes> kNames{"pp", "dp", "ep", "ring", "cp", "tpy", "tp"};
  return value < 0 ? "none" : std::string(kNames.at(static_cast<std::size_t>(value)));
}

// Value of a strategy with one device, which has no innermost axis.
constexpr std::int32_t kOneDevice = -1;
std::int32_t innermost(const Strategy& s) {
  for (std::size_t i = kPlanAxes; i-- > 0;)
    if (s[s.order[i]] > 1) return static_cast<std::int32_t>(s.order[i]);
  return kOneDevice;
}

bool may_be_innermost(const Strategy& shape, std::int32_t value) {
  return value == kOneDevice ? shape.devices() == 1 : shape.sizes[static_cast<std::size_t>(value)] > 1;
}

}  // namespace

const std::vector<Dimension>& dimensions() {
  static const std::vector<Dimension> kDimensions = {
      {"pp", "pipeline", size_of_axis<PlanAxis::kPipeline>, number, DecidedAt::kShape},
      {"dp", "data", size_of_axis<PlanAxis::kData>, number, DecidedAt::kShape},
      {"ep", "expert", size_of_axis<PlanAxis::kExpert>, number, DecidedAt::kShape},
      {"ring", "ring", size_of_axis<PlanAxis::kRing>, number, DecidedAt::kShape},
      {"cp", "context", size_of_axis<PlanAxis::kContext>, number, DecidedAt::kShape},
      {"tp", "tensor", size_of_axis<PlanAxis::kTensor>, number, DecidedAt::kShape},
      {"tpy", "tensor, second", size_of_axis<PlanAxis::kTensorY>, number, DecidedAt::kShape},
      {"experts",
       "experts on the tensor axis",
       [](const Strategy& s) { return static_cast<std::int32_t>(s.experts); },
       [](std::int32_t v) { return std::string(name(static_cast<PlanExperts>(v))); },
       DecidedAt::kBounded,
       {0, 1, 2}},
      {"zero", "ZeRO", [](const Strategy& s) { return s.zero; }, number},
      {"samples", "samples a micro-batch", [](const Strategy& s) { return s.samples; }, number},
      {"schedule",
       "schedule",
       [](const Strategy& s) { return of_pipeline(s, s.schedule); },
       [](std::int32_t v) {
         return v == kNoPipeline ? "none" : std::string(name(static_cast<PlanSchedule>(v)));
       },
       DecidedAt::kBounded,
       {kNoPipeline, 0, 1, 2, 3}},
      {"chunks", "stages a device", [](const Strategy& s) { return s.chunks; }, number},
      {"stages",
       "layers of stages",
       [](const Strategy& s) {
         return std::int32_t{s.first_stage_shortfall != 0 || s.last_stage_shortfall != 0};
       },
       [](std::int32_t v) { return std::string(v != 0 ? "balanced" : "even"); },
       DecidedAt::kBounded,
       {0, 1}},
      {"recompute",
       "recomputation",
       [](const Strategy& s) {
         return 2 * static_cast<std::int32_t>(s.recompute) + (s.extra_recompute_layers > 0 ? 1 : 0);
       },
       recompute_of,
       DecidedAt::kBounded,
       {0, 1, 2, 3, 4}},
      {"memory",
       "memory",
       [](const Strategy& s) { return static_cast<std::int32_t>(s.memory); },
       [](std::int32_t v) { return std::string(v != 0 ? "hyperoffload" : "none"); },
       DecidedAt::kForecast,
       {0, 1}},
      {"innermost",
       "axis whose devices lie side by side",
       innermost,
       axis_words,
       DecidedAt::kOrder,
       {kOneDevice, 0, 1, 2, 3, 4, 5, 6},
       may_be_innermost},
  };
  return kDimensions;
}

void Alternative::add_promising(const Strategy& s, const Forecast& forecast) {
  if (promising.size() == kMostPromising && forecast.time >= promising.back().first.time) return;
  const auto time = [](const auto& p) { return p.first.time; };
  promising.insert(std::ranges::upper_bound(promising, forecast.time, {}, time), {forecast, s});
  if (promising.size() > kMostPromising) promising.pop_back();
}

void Alternatives::add(const Alternatives& other) {
  for (std::size_t d = 0; d < tables_.size(); ++d)
    for (const auto& [value, theirs] : other.tables_[d]) {
      Alternative& a = tables_[d][value];
      if (theirs.divide > 0)
        a.least_memory = a.divide > 0 ? std::min(a.least_memory, theirs.least_memory) : theirs.least_memory;
      if (theirs.fit > 0 && (a.fit == 0 || theirs.least_bound < a.least_bound))
        a.least_bound = theirs.least_bound, a.least_bound_strategy = theirs.least_bound_strategy;
      a.strategies += theirs.strategies, a.divide += theirs.divide, a.fit += theirs.fit;
      for (const auto& [forecast, strategy] : theirs.promising) a.add_promising(strategy, forecast);
    }
}

void Alternatives::count_divided(std::int64_t least_memory) {
  for (const auto& [value, a] : latest_)
    if (a->divide++ == 0 || least_memory < a->least_memory) a->least_memory = least_memory;
}

void Alternatives::count_fitting(const Strategy& s, double bound) {
  for (const auto& [value, a] : latest_)
    if (a->fit++ == 0 || bound < a->least_bound) a->least_bound = bound, a->least_bound_strategy = s;
}

void Alternatives::count_forecast(const Strategy& s, const Forecast& forecast) {
  each(s, [&](Alternative& a) { a.add_promising(s, forecast); });
}

}  // namespace hyperrun
