#include "runtime/plan/choice_ablation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <ranges>
#include <set>
#include <utility>

#include "runtime/base/parallel.h"

namespace hyperrun {
namespace {

std::string time_of(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

// Relative difference, rounded to a tenth of a percent.
std::string more(double other, double best) {
  const double tenths = std::round(1000 * (other / best - 1));
  return fmt::format("{:+.1f} %", tenths == 0 ? 0 : tenths / 10);
}

constexpr double kWorthTelling = 0.2;  // changes below this part of the largest one are not told
constexpr std::size_t kMostParts = 3;

// The largest changes, increases first: "computing +41.7 us, bubble -12.0 us".
template <std::size_t kParts>
std::string changes(std::array<std::pair<const char*, double>, kParts> parts) {
  const auto size = [](const auto& p) { return std::abs(p.second); };
  std::ranges::stable_sort(parts, std::ranges::greater(), size);
  std::string longer, shorter;
  for (std::size_t i = 0; i < kMostParts; ++i) {
    const auto& [name, change] = parts[i];
    if (change == 0 || std::abs(change) < kWorthTelling * size(parts.front())) break;
    std::string& text = change > 0 ? longer : shorter;
    text += ", " + std::string(name) + (change > 0 ? " +" : " -") + time_of(std::abs(change));
  }
  const std::string all = longer + shorter;
  return all.empty() ? all : all.substr(2);
}

std::string by_forecast(const Forecast& best, const Forecast& other) {
  return changes(std::array<std::pair<const char*, double>, 5>{{
      {"computing", other.computing - best.computing},
      {"exposed communication", other.exposed - best.exposed},
      {"bubble", other.bubble - best.bubble},
      {"once a step", other.once - best.once},
      {"transfers", other.transfer - best.transfer},
  }});
}

const SimulatedCandidate* find_simulated(const Search& s, const Strategy& strategy) {
  for (const SimulatedAlternative& a : s.others)
    if (a.requested == strategy) return &a.leader;
  for (const SimulatedCandidate& l : s.leaders)
    if (l.strategy == strategy) return &l;
  return nullptr;
}

// The fastest simulated strategy with this value.
const SimulatedCandidate* fastest_with(const Search& s, const Dimension& d, std::int32_t value) {
  const SimulatedCandidate* fastest = nullptr;
  const auto look = [&](const SimulatedCandidate& l) {
    if (l.simulated > 0 && d.value(l.strategy) == value &&
        (fastest == nullptr || l.simulated < fastest->simulated))
      fastest = &l;
  };
  for (const SimulatedCandidate& l : s.leaders) look(l);
  for (const SimulatedAlternative& a : s.others) look(a.leader);
  return fastest;
}

std::string lost_by(const std::string& loss, const Strategy& strategy) {
  return fmt::format("{}{} ({})", loss.empty() ? "" : ": ", loss, describe(strategy));
}

void fill_simulated(const SimulatedCandidate& l, const SimulatedCandidate& best, Verdict& v) {
  v.strategy = l.strategy, v.simulated = l.simulated;
  v.sentence = fmt::format("{}, {}{}", time_of(l.simulated), more(l.simulated, best.simulated),
                           lost_by(where_it_loses(best, l), l.strategy));
}

// Text for a strategy that was refused, or that simulation turned into another one.
std::string refusal_text(const SimulatedCandidate& l, const Strategy& requested) {
  if (l.simulated > 0)
    return (requested.memory != PlanMemory::kNone && l.strategy.memory == PlanMemory::kNone
                ? ", but nothing has to move: "
                : ", but it fits only as ") +
           describe(l.strategy) + ": " + time_of(l.simulated);
  return ", but refused: " + l.why_not.substr(0, l.why_not.find('\n'));
}

void fill_forecast(const Alternative& a, const Search& s, Verdict& v) {
  const SimulatedCandidate& best = s.leaders.front();
  const bool comparable = best.forecast.time > 0;
  const auto& [forecast, strategy] = a.promising.front();
  const SimulatedCandidate* refused = find_simulated(s, strategy);
  v.strategy = strategy, v.forecast = forecast.time;
  v.sentence = std::string(refused == nullptr ? "not simulated" : "tried") + ", forecast " +
               time_of(forecast.time) + ", " +
               (comparable ? more(forecast.time, best.forecast.time) + " on the first's forecast of " +
                                 time_of(best.forecast.time)
                           : more(forecast.time, best.simulated)) +
               lost_by(comparable ? by_forecast(best.forecast, forecast) : "", strategy) +
               (refused == nullptr ? "" : refusal_text(*refused, strategy));
}

void fill_verdict(const Alternative& a, const Search& s, Bytes hbm, const SimulatedCandidate* fastest,
                  Verdict& v) {
  const SimulatedCandidate& best = s.leaders.front();
  if (fastest != nullptr) return fill_simulated(*fastest, best, v);
  if (!a.promising.empty()) return fill_forecast(a, s, v);
  if (a.divide == 0) {
    v.sentence = "no tensor layout divides so";
  } else if (a.fit == 0) {
    v.sentence = "does not fit: at least " + to_string(Bytes(a.least_memory)) + " of HBM, " +
                 to_string(Bytes(a.least_memory - hbm.value)) + " more than there is";
  } else {
    const SimulatedCandidate* refused = find_simulated(s, a.least_bound_strategy);
    v.strategy = a.least_bound_strategy, v.bound = a.least_bound;
    v.sentence =
        refused != nullptr
            ? "tried: " + describe(a.least_bound_strategy) + refusal_text(*refused, a.least_bound_strategy)
            : "at least " + time_of(a.least_bound) + ", " + more(a.least_bound, best.simulated);
  }
}

template <class Visit>
void each_alternative(const Search& s, Visit visit) {
  for (std::size_t d = 0; d < dimensions().size(); ++d) {
    // Dimensions decided after the bounds have no bounded alternatives. Their values come from forecasts and
    // simulations.
    const Dimension& dimension = dimensions()[d];
    const bool bounded = dimension.decided_at <= DecidedAt::kBounded;
    std::map<std::int32_t, Alternative> told;
    for (const auto& [value, a] : s.alternatives.of(d))
      if (bounded || !a.promising.empty()) told.emplace(value, a);
    for (const SimulatedCandidate& l : s.leaders)
      if (l.simulated > 0) told.try_emplace(dimension.value(l.strategy));
    for (const SimulatedAlternative& a : s.others)
      if (a.leader.simulated > 0) told.try_emplace(dimension.value(a.leader.strategy));
    for (const auto& [value, a] : told) visit(dimension, value, a, told.size() == 1);
  }
}

std::string why_alone(const Dimension& d) {
  return d.decided_at <= DecidedAt::kBounded ? "; the space has no other" : "; no other came to a forecast";
}

// Searches the best strategy with a value for which everything tried was refused.
void search_where_refused(const Job& base, const Space& space, Search& s, const Progress& progress) {
  std::vector<SimulatedAlternative> found;
  each_alternative(s, [&](const Dimension& d, std::int32_t value, const Alternative& a, bool) {
    const auto is_left = [&](const auto& promising) {
      return find_simulated(s, promising.second) == nullptr;
    };
    if (a.fit == 0 || fastest_with(s, d, value) != nullptr || std::ranges::any_of(a.promising, is_left))
      return;
    Space with = space;
    with.only.push_back({.dimension = static_cast<std::size_t>(&d - dimensions().data()), .values = {value}});
    const Search of_value =
        search(base, {.space = &with,
                      .leaders = 1,
                      .progress = within(progress, std::string(d.key) + "=" + d.text(value)),
                      .unlikely = false});
    if (of_value.found()) found.push_back({of_value.leaders.front().strategy, of_value.leaders.front()});
  });
  std::ranges::move(found, std::back_inserter(s.others));
}

using Wanted = std::vector<std::pair<Strategy, Forecast>>;

// Adds the strategies with the fastest forecasts, as far as `passes` allow; it is reduced by those added.
void add_doubtful(const Job& base, Wanted doubtful, std::int64_t& passes, Wanted& wanted) {
  std::ranges::stable_sort(doubtful, {}, [](const auto& d) { return d.second.time; });
  for (auto& d : doubtful)
    if (const std::int64_t own = layer_passes(base, d.first); own <= passes)
      passes -= own, wanted.push_back(std::move(d));
}

// Simulates alternatives to the present first leader. `passes`: limit for strategies with offloading, which
// take long to plan; it is reduced.
void simulate_beside_the_first(const Job& base, const Space& space, Search& s, std::int64_t& passes,
                               const Progress& progress) {
  const SimulatedCandidate best = s.leaders.front();
  const std::size_t each = s.is_quick(base.model.layers) ? Alternative::kMostPromising : 1;
  const double expected = best.forecast.time > 0 ? best.forecast.time : best.simulated;
  Wanted wanted, doubtful;
  const auto takes_long = [&](const Strategy& strategy) {
    return strategy.memory != PlanMemory::kNone && (each == 1 || layer_passes(base, strategy) > kQuickPasses);
  };
  const auto want = [&](const Strategy& strategy, const Forecast& forecast) {
    const bool is_doubtful = forecast.time > 0 && forecast.time <= expected;
    if ((takes_long(strategy) && !is_doubtful) || find_simulated(s, strategy) != nullptr) return;
    Wanted& list = takes_long(strategy) ? doubtful : wanted;
    const auto is_same = [&](const auto& w) { return w.first == strategy; };
    if (std::ranges::none_of(list, is_same)) list.emplace_back(strategy, forecast);
  };
  each_alternative(s, [&](const Dimension& d, std::int32_t value, const Alternative& a, bool) {
    if (value == d.value(best.strategy)) return;
    // If the most promising one is too large to plan, the first small one is taken.
    const auto is_small = [&](const auto& p) {
      return !takes_long(p.second) || layer_passes(base, p.second) <= kFewOffloadedPasses;
    };
    for (const auto& [forecast, strategy] :
         a.promising | std::views::filter(is_small) | std::views::take(each))
      want(strategy, forecast);
    // Strategies with a slower bound are simulated only if that is quick.
    if (a.promising.empty() && a.fit > 0 && (each > 1 || a.least_bound < best.simulated))
      want(a.least_bound_strategy, {});
    if (d.decided_at != DecidedAt::kOrder) return;
    // Few axis orders have forecasts, so other orders of the best strategy are tried.
    std::size_t orders = 0;
    for (const Strategy& order : orders_of(best.strategy))
      if (d.value(order) == value && meets(space.only, order) && orders++ < each) want(order, best.forecast);
  });
  add_doubtful(base, std::move(doubtful), passes, wanted);
  const std::string of_all =
      fmt::format("of {} alternatives simulated", std::ssize(s.others) + std::ssize(wanted));
  std::mutex mutex;
  parallel_for(wanted.size(), [&](std::size_t i) {
    SimulatedCandidate leader =
        simulate_or_repair(base, space, wanted[i].first, wanted[i].second, {.longest = kLongStep});
    const std::lock_guard lock(mutex);
    s.others.push_back({wanted[i].first, without_plan(std::move(leader))});
    if (progress) progress(of_all, std::ssize(s.others));
  });
  if (each > 1) search_where_refused(base, space, s, progress);
  // A fixed order, independent of the threads.
  std::ranges::sort(s.others, {}, [](const SimulatedAlternative& a) { return describe(a.requested); });
  for (const auto& [requested, l] : s.others) {
    if (l.simulated == 0) continue;
    s.bounds_hold = s.bounds_hold && l.simulated >= l.forecast.bound;
    if (l.simulated < s.leaders.front().simulated) s.adopt(l);
  }
}

}  // namespace

std::string where_it_loses(const SimulatedCandidate& best, const SimulatedCandidate& other) {
  const auto more_of = [&](Nanos Breakdown::*part) {
    return static_cast<double>((other.parts.*part - best.parts.*part).value);
  };
  return changes(std::array<std::pair<const char*, double>, 5>{{
      {"computing", more_of(&Breakdown::compute)},
      {"exposed communication", more_of(&Breakdown::communication)},
      {"transfers", more_of(&Breakdown::transfer)},
      {"bubble", more_of(&Breakdown::bubble)},
      {"optimizer", more_of(&Breakdown::optimizer)},
  }});
}

std::vector<Verdict> verdicts(const Search& s, Bytes hbm) {
  std::vector<Verdict> list;
  const SimulatedCandidate& best = s.leaders.front();
  each_alternative(s, [&](const Dimension& d, std::int32_t value, const Alternative& a, bool alone) {
    Verdict& v = list.emplace_back();
    v.key = d.key, v.dimension = d.name, v.value = d.text(value);
    v.chosen = value == d.value(best.strategy);
    if (!v.chosen) return fill_verdict(a, s, hbm, fastest_with(s, d, value), v);
    v.strategy = best.strategy, v.simulated = best.simulated;
    v.sentence = "chosen: " + time_of(best.simulated) + (alone ? why_alone(d) : "");
  });
  return list;
}

void simulate_alternatives(const Job& base, const Space& space, Search& s, const Progress& progress) {
  std::int64_t passes = kFewOffloadedPasses;
  for (bool faster = true; faster;) {
    const Strategy first = s.leaders.front().strategy;
    simulate_beside_the_first(base, space, s, passes, progress);
    faster = s.leaders.front().strategy != first;
  }
}

}  // namespace hyperrun
