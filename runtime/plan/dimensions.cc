#include "runtime/plan/dimensions.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "runtime/base/format.h"

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
  return value % 2 == 0 ? text : text + " to " + std::string(name(*next_after(recompute)));
}

std::string time_of(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

std::string more(double other, double best) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%+.1f %%", 100 * (other / best - 1));
  return text.data();
}

}  // namespace

const std::vector<Dimension>& dimensions() {
  static const std::vector<Dimension> kDimensions = {
      {"pipeline", size_of_axis<PlanAxis::kPipeline>, number},
      {"data", size_of_axis<PlanAxis::kData>, number},
      {"expert", size_of_axis<PlanAxis::kExpert>, number},
      {"ring", size_of_axis<PlanAxis::kRing>, number},
      {"context", size_of_axis<PlanAxis::kContext>, number},
      {"tensor", size_of_axis<PlanAxis::kTensor>, number},
      {"tensor, second", size_of_axis<PlanAxis::kTensorY>, number},
      {"width of experts", [](const Strategy& s) { return std::int32_t{s.expert_width}; },
       [](std::int32_t v) { return std::string(v != 0 ? "split" : "whole"); }},
      {"ZeRO", [](const Strategy& s) { return s.zero; }, number},
      {"samples a micro-batch", [](const Strategy& s) { return s.samples; }, number},
      {"schedule", [](const Strategy& s) { return static_cast<std::int32_t>(s.schedule); },
       [](std::int32_t v) { return std::string(name(static_cast<PlanSchedule>(v))); }},
      {"stages a device", [](const Strategy& s) { return s.chunks; }, number},
      {"layers of stages", [](const Strategy& s) { return std::int32_t{s.lead != 0 || s.tail != 0}; },
       [](std::int32_t v) { return std::string(v != 0 ? "balanced" : "even"); }},
      {"recomputation",
       [](const Strategy& s) { return 2 * static_cast<std::int32_t>(s.recompute) + (s.deeper > 0 ? 1 : 0); },
       recompute_of},
  };
  return kDimensions;
}

void Alternatives::add(const Alternatives& other) {
  for (std::size_t d = 0; d < tables_.size(); ++d)
    for (const auto& [value, theirs] : other.tables_[d]) {
      Alternative& a = tables_[d][value];
      if (theirs.divide > 0)
        a.least_memory = a.divide > 0 ? std::min(a.least_memory, theirs.least_memory) : theirs.least_memory;
      if (theirs.fit > 0)
        a.least_bound = a.fit > 0 ? std::min(a.least_bound, theirs.least_bound) : theirs.least_bound;
      a.strategies += theirs.strategies, a.divide += theirs.divide, a.fit += theirs.fit;
      if (theirs.best && (!a.best || theirs.forecast.time < a.forecast.time))
        a.best = theirs.best, a.forecast = theirs.forecast;
    }
}

void Alternatives::count_divided(const Strategy& s, std::int64_t least_memory) {
  each(s, [&](Alternative& a) {
    if (a.divide++ == 0 || least_memory < a.least_memory) a.least_memory = least_memory;
  });
}

void Alternatives::count_fitting(const Strategy& s, double bound) {
  each(s, [&](Alternative& a) {
    if (a.fit++ == 0 || bound < a.least_bound) a.least_bound = bound;
  });
}

void Alternatives::count_forecast(const Strategy& s, const Forecast& forecast) {
  each(s, [&](Alternative& a) {
    if (!a.best || forecast.time < a.forecast.time) a.best = s, a.forecast = forecast;
  });
}

std::string where_it_loses(const Forecast& best, const Forecast& other) {
  const std::array<std::pair<const char*, double>, 5> parts{{
      {"computing", other.computing - best.computing},
      {"exposed communication", other.exposed - best.exposed},
      {"bubble", other.bubble - best.bubble},
      {"once a step", other.once - best.once},
      {"transfers", other.transfer - best.transfer},
  }};
  const std::pair<const char*, double>* most = &parts.front();
  for (const auto& part : parts)
    if (part.second > most->second) most = &part;
  return most->second > 0 ? std::string(most->first) + " +" + time_of(most->second) : "";
}

std::vector<Verdict> verdicts(const Alternatives& alternatives, const Strategy& best,
                              const Forecast& forecast, Bytes hbm) {
  std::vector<Verdict> list;
  for (std::size_t d = 0; d < dimensions().size(); ++d) {
    const Dimension& dimension = dimensions()[d];
    const auto& values = alternatives.of(d);
    if (values.size() < 2) continue;
    for (const auto& [value, a] : values) {
      Verdict v{std::string(dimension.name), dimension.words(value), "", value == dimension.value(best)};
      if (v.chosen)
        v.sentence = "chosen: " + time_of(forecast.time);
      else if (a.divide == 0)
        v.sentence = "no tensor layout divides so";
      else if (a.fit == 0)
        v.sentence = "does not fit: at least " + to_string(Bytes(a.least_memory)) + " of HBM, " +
                     to_string(Bytes(a.least_memory - hbm.value)) + " more than there is";
      else if (!a.best)
        v.sentence = "at least " + time_of(a.least_bound) + ", " + more(a.least_bound, forecast.time);
      else {
        const std::string loss = where_it_loses(forecast, a.forecast);
        v.sentence = time_of(a.forecast.time) + ", " + more(a.forecast.time, forecast.time) +
                     (loss.empty() ? "" : ": " + loss) + " (" + words(*a.best) + ")";
      }
      list.push_back(std::move(v));
    }
  }
  return list;
}

}  // namespace hyperrun
