#include "runtime/plan/why.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <ranges>
#include <set>
#include <utility>

#include "runtime/base/format.h"
#include "runtime/base/parallel.h"

namespace hyperrun {
namespace {

std::string time_of(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

// To a tenth of a percent.
std::string more(double other, double best) {
  const double tenths = std::round(1000 * (other / best - 1));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%+.1f %%", tenths == 0 ? 0 : tenths / 10);
  return text.data();
}

constexpr double kWorthTelling = 0.2;  // of the largest change
constexpr std::size_t kMostParts = 3;

// "computing +41.7 us, bubble -12.0 us": the largest changes, what is longer first.
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

const Leader* tried(const Search& s, const Strategy& strategy) {
  for (const Answered& a : s.others)
    if (a.asked == strategy) return &a.leader;
  for (const Leader& l : s.leaders)
    if (l.strategy == strategy) return &l;
  return nullptr;
}

// Of all that were simulated with this value.
const Leader* fastest_with(const Search& s, const Dimension& d, std::int32_t value) {
  const Leader* fastest = nullptr;
  const auto look = [&](const Leader& l) {
    if (l.simulated > 0 && d.value(l.strategy) == value &&
        (fastest == nullptr || l.simulated < fastest->simulated))
      fastest = &l;
  };
  for (const Leader& l : s.leaders) look(l);
  for (const Answered& a : s.others) look(a.leader);
  return fastest;
}

std::string lost_by(const std::string& loss, const Strategy& strategy) {
  return (loss.empty() ? "" : ": " + loss) + " (" + words(strategy) + ")";
}

void tell_simulated(const Leader& l, const Leader& best, Verdict& v) {
  v.strategy = l.strategy, v.simulated = l.simulated;
  v.sentence = time_of(l.simulated) + ", " + more(l.simulated, best.simulated) +
               lost_by(where_it_loses(best, l), l.strategy);
}

// Of what was tried and is not as it was asked: it may have become another.
std::string refused_words(const Leader& l, const Strategy& asked) {
  if (l.simulated > 0)
    return (asked.memory != PlanMemory::kNone && l.strategy.memory == PlanMemory::kNone
                ? ", but nothing has to move: "
                : ", but it fits only as ") +
           words(l.strategy) + ": " + time_of(l.simulated);
  return ", but refused: " + l.why_not.substr(0, l.why_not.find('\n'));
}

void tell_forecast(const Alternative& a, const Search& s, Verdict& v) {
  const Leader& best = s.leaders.front();
  const bool comparable = best.forecast.time > 0;
  const auto& [forecast, strategy] = a.promising.front();
  const Leader* refused = tried(s, strategy);
  v.strategy = strategy, v.forecast = forecast.time;
  v.sentence = std::string(refused == nullptr ? "not simulated" : "tried") + ", forecast " +
               time_of(forecast.time) + ", " +
               (comparable ? more(forecast.time, best.forecast.time) + " on the first's forecast of " +
                                 time_of(best.forecast.time)
                           : more(forecast.time, best.simulated)) +
               lost_by(comparable ? by_forecast(best.forecast, forecast) : "", strategy) +
               (refused == nullptr ? "" : refused_words(*refused, strategy));
}

void tell(const Alternative& a, const Search& s, Bytes hbm, const Leader* fastest, Verdict& v) {
  const Leader& best = s.leaders.front();
  if (fastest != nullptr) return tell_simulated(*fastest, best, v);
  if (!a.promising.empty()) return tell_forecast(a, s, v);
  if (a.divide == 0) {
    v.sentence = "no tensor layout divides so";
  } else if (a.fit == 0) {
    v.sentence = "does not fit: at least " + to_string(Bytes(a.least_memory)) + " of HBM, " +
                 to_string(Bytes(a.least_memory - hbm.value)) + " more than there is";
  } else {
    const Leader* refused = tried(s, a.of_least);
    v.strategy = a.of_least, v.bound = a.least_bound;
    v.sentence = refused != nullptr
                     ? "tried: " + words(a.of_least) + refused_words(*refused, a.of_least)
                     : "at least " + time_of(a.least_bound) + ", " + more(a.least_bound, best.simulated);
  }
}

template <class Visit>
void each_alternative(const Search& s, Visit visit) {
  for (std::size_t d = 0; d < dimensions().size(); ++d) {
    // What is settled behind the bounds has none: there it is what was forecast or simulated.
    const Dimension& dimension = dimensions()[d];
    const bool bounded = dimension.settled <= Settled::kBounded;
    std::map<std::int32_t, Alternative> told;
    for (const auto& [value, a] : s.alternatives.of(d))
      if (bounded || !a.promising.empty()) told.emplace(value, a);
    for (const Leader& l : s.leaders)
      if (l.simulated > 0) told.try_emplace(dimension.value(l.strategy));
    for (const Answered& a : s.others)
      if (a.leader.simulated > 0) told.try_emplace(dimension.value(a.leader.strategy));
    for (const auto& [value, a] : told) visit(dimension, value, a, told.size() == 1);
  }
}

std::string why_alone(const Dimension& d) {
  return d.settled <= Settled::kBounded ? "; the space has no other" : "; no other came to a forecast";
}

// The best with a value of which nothing that was tried fits, and nothing is left to be tried.
void search_where_refused(const Job& base, const Space& space, Search& s, const Progress& progress) {
  std::vector<Answered> found;
  each_alternative(s, [&](const Dimension& d, std::int32_t value, const Alternative& a, bool) {
    const auto is_left = [&](const auto& promising) { return tried(s, promising.second) == nullptr; };
    if (a.fit == 0 || fastest_with(s, d, value) != nullptr || std::ranges::any_of(a.promising, is_left))
      return;
    Space with = space;
    with.only.push_back({.dimension = static_cast<std::size_t>(&d - dimensions().data()), .values = {value}});
    const Search of_value =
        search(base, {.space = &with,
                      .leaders = 1,
                      .progress = within(progress, std::string(d.key) + "=" + d.words(value)),
                      .unlikely = false});
    if (of_value.found()) found.push_back({of_value.leaders.front().strategy, of_value.leaders.front()});
  });
  std::ranges::move(found, std::back_inserter(s.others));
}

using Wanted = std::vector<std::pair<Strategy, Forecast>>;

// Of what would be told by its forecast as faster than the first those that are forecast to be fastest, of
// `passes` at most, which they use up.
void add_doubtful(const Job& base, Wanted doubtful, std::int64_t& passes, Wanted& wanted) {
  std::ranges::stable_sort(doubtful, {}, [](const auto& d) { return d.second.time; });
  for (auto& d : doubtful)
    if (const std::int64_t own = passes_of(base, d.first); own <= passes)
      passes -= own, wanted.push_back(std::move(d));
}

// Alternatives of the first, as it is now. `passes`: through layers, of what moves and takes long to plan.
void simulate_beside_the_first(const Job& base, const Space& space, Search& s, std::int64_t& passes,
                               const Progress& progress) {
  const Leader best = s.leaders.front();
  const std::size_t each = s.takes_a_moment(base.model.layers) ? Alternative::kMostPromising : 1;
  const double expected = best.forecast.time > 0 ? best.forecast.time : best.simulated;
  Wanted wanted, doubtful;
  const auto takes_long = [&](const Strategy& strategy) {
    return strategy.memory != PlanMemory::kNone &&
           (each == 1 || passes_of(base, strategy) > kPassesInAMoment);
  };
  const auto want = [&](const Strategy& strategy, const Forecast& forecast) {
    const bool is_doubtful = forecast.time > 0 && forecast.time <= expected;
    if ((takes_long(strategy) && !is_doubtful) || tried(s, strategy) != nullptr) return;
    Wanted& list = takes_long(strategy) ? doubtful : wanted;
    const auto is_same = [&](const auto& w) { return w.first == strategy; };
    if (std::ranges::none_of(list, is_same)) list.emplace_back(strategy, forecast);
  };
  each_alternative(s, [&](const Dimension& d, std::int32_t value, const Alternative& a, bool) {
    if (value == d.value(best.strategy)) return;
    // The first that can be planned, where the most promising one cannot.
    const auto is_small = [&](const auto& p) {
      return !takes_long(p.second) || passes_of(base, p.second) <= kFewMovedPasses;
    };
    for (const auto& [forecast, strategy] :
         a.promising | std::views::filter(is_small) | std::views::take(each))
      want(strategy, forecast);
    // What its bound shows to be slower is simulated where that takes a moment.
    if (a.promising.empty() && a.fit > 0 && (each > 1 || a.least_bound < best.simulated))
      want(a.of_least, {});
    if (d.settled != Settled::kOrder) return;
    // The best in another order is forecast in few of them.
    std::size_t orders = 0;
    for (const Strategy& order : orders_of(best.strategy))
      if (d.value(order) == value && meets(space.only, order) && orders++ < each) want(order, best.forecast);
  });
  add_doubtful(base, std::move(doubtful), passes, wanted);
  const std::string of_all =
      "of " + std::to_string(std::ssize(s.others) + std::ssize(wanted)) + " alternatives simulated";
  std::mutex mutex;
  parallel_for(wanted.size(), [&](std::size_t i) {
    Leader leader = try_near(base, space, wanted[i].first, wanted[i].second, {.longest = kLongStep});
    const std::lock_guard lock(mutex);
    s.others.push_back({wanted[i].first, without_plan(std::move(leader))});
    if (progress) progress(of_all, std::ssize(s.others));
  });
  if (each > 1) search_where_refused(base, space, s, progress);
  // In one order, however threads have ended.
  std::ranges::sort(s.others, {}, [](const Answered& a) { return words(a.asked); });
  for (const auto& [asked, l] : s.others) {
    if (l.simulated == 0) continue;
    s.bounds_hold = s.bounds_hold && l.simulated >= l.forecast.bound;
    if (l.simulated < s.leaders.front().simulated) s.adopt(l);
  }
}

}  // namespace

std::string where_it_loses(const Leader& best, const Leader& other) {
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
  const Leader& best = s.leaders.front();
  each_alternative(s, [&](const Dimension& d, std::int32_t value, const Alternative& a, bool alone) {
    Verdict& v = list.emplace_back();
    v.key = d.key, v.dimension = d.name, v.value = d.words(value);
    v.chosen = value == d.value(best.strategy);
    if (!v.chosen) return tell(a, s, hbm, fastest_with(s, d, value), v);
    v.strategy = best.strategy, v.simulated = best.simulated;
    v.sentence = "chosen: " + time_of(best.simulated) + (alone ? why_alone(d) : "");
  });
  return list;
}

void simulate_alternatives(const Job& base, const Space& space, Search& s, const Progress& progress) {
  std::int64_t passes = kFewMovedPasses;
  for (bool faster = true; faster;) {
    const Strategy first = s.leaders.front().strategy;
    simulate_beside_the_first(base, space, s, passes, progress);
    faster = s.leaders.front().strategy != first;
  }
}

}  // namespace hyperrun
