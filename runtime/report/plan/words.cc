#include "runtime/report/plan/words.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "runtime/base/format.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

constexpr std::size_t kRefusedRows = 3;

std::string share(Nanos part, double step) { return percent_words(static_cast<double>(part.value) / step); }

// Of a refusal: the rest says what is where, of a job that nobody wrote.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Table ranking(const Search& s, std::size_t most_rows) {
  Table table({left("strategy"), right("step"), right("forecast"), right("MFU"), right("HBM"),
               right("compute"), right("exposed comm"), right("transfer"), right("bubble"),
               right("optimizer"), right("busiest computes"), right("its bubble")});
  for (const Leader& l : s.leaders | std::views::take(most_rows)) {
    if (l.simulated == 0) {
      table.row({words(l.strategy), "refused", l.forecast.time > 0 ? describe_time(l.forecast.time) : ""});
      continue;
    }
    table.row({words(l.strategy), describe_time(l.simulated),
               l.forecast.time > 0 ? format("%+.1f %%", 100 * (l.forecast.time / l.simulated - 1)) : "",
               percent_words(l.mfu), to_string(l.hbm), share(l.parts.compute, l.simulated),
               share(l.parts.communication, l.simulated), share(l.parts.transfer, l.simulated),
               share(l.parts.bubble, l.simulated), share(l.parts.optimizer, l.simulated),
               share(l.busiest.compute, l.simulated), share(l.busiest.bubble, l.simulated)});
  }
  return table;
}

// The most promising of them by their forecasts.
std::string refused_words(const Search& s) {
  std::vector<const Leader*> refused;
  for (const Leader& l : s.leaders)
    if (l.simulated == 0) refused.push_back(&l);
  std::ranges::stable_sort(refused, {}, [](const Leader* l) {
    return l->forecast.time > 0 ? l->forecast.time : std::numeric_limits<double>::infinity();
  });
  std::string text;
  for (const Leader* l : refused | std::views::take(kRefusedRows))
    text += "refused: " + words(l->strategy) + ": " + first_line(l->why_not) + "\n";
  if (refused.size() > kRefusedRows)
    text += "and " + with_separators(refused.size() - kRefusedRows) +
            " more were refused, which --json and --csv have\n";
  return text;
}

}  // namespace

bool says_something(double gap) { return gap <= 1; }
std::string gap_words(double gap) { return says_something(gap) ? percent_words(gap) : "no useful bound"; }
std::string certificate_words(const Search& s) {
  if (!s.is_whole) return "the search was not finished: nothing is certified";
  if (!s.bounds_hold) return "a step was shorter than its bound: nothing is certified";
  if (says_something(s.gap()))
    return "no strategy is more than " + percent_words(s.gap()) +
           " faster than the first on the machine that was simulated (none recomputes in more layers than it "
           "must to "
           "fit)";
  return format(
      "no useful bound: of what was not simulated, bounds only say that it takes 1/%.0f of the first at "
      "least",
      std::ceil(1 + s.gap()));
}

std::string percent_words(double share) { return format("%.1f %%", 100 * share); }
std::string describe_time(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

std::string_view pass_words(Pass pass) {
  switch (pass) {
    case Pass::kForward: return "forward pass";
    case Pass::kBackward: return "backward pass";
    case Pass::kUpdate: return "update";
  }
  return "";
}

std::string search_words(const Search& s, std::size_t most_rows) {
  const auto simulated = std::ranges::count_if(s.leaders, [](const Leader& l) { return l.simulated > 0; });
  std::string text = format(
      "%s strategies: %s with layouts that do not divide, %s that do not fit, %s bounded, %s forecast, %td "
      "simulated\n\n",
      with_separators(s.strategies).c_str(), with_separators(s.do_not_divide).c_str(),
      with_separators(s.do_not_fit).c_str(), with_separators(s.bounded).c_str(),
      with_separators(s.forecast).c_str(), simulated);
  text += ranking(s, most_rows).str();
  if (s.leaders.size() > most_rows)
    text += "and " + with_separators(s.leaders.size() - most_rows) + " more, which --json and --csv have\n";
  return text + "\n" + certificate_words(s) + "\n" + refused_words(s);
}

std::string own_words(const OwnStrategy& own, const Leader& best) {
  const Leader& l = own.leader;
  const std::string name =
      std::string("as the job has it") + (own.in_space ? "" : " (not a strategy of the space)");
  if (l.simulated == 0) return name + ": " + first_line(l.why_not) + "\n";
  return name + ": " + describe_time(l.simulated) +
         format(", %.2fx the first, MFU ", l.simulated / best.simulated) + percent_words(l.mfu) + ", HBM " +
         to_string(l.hbm) + "\n";
}

std::string why_words(const std::vector<Verdict>& why) {
  std::string text =
      "\nwhat the most promising with each other value takes, simulated; at least, by its bound, where that"
      " is more";
  if (std::ranges::any_of(why, [](const Verdict& v) { return v.forecast > 0 && v.simulated == 0; }))
    text +=
        "; a forecast where transfers would have to be planned for it: that has neither their latencies nor"
        " how they wait for each other, so it is far off where tensors are small";
  text += "\n";
  std::string key;
  for (const Verdict& v : why) {
    if (v.key != key) text += "\n" + v.dimension + " (" + v.key + ")\n";
    key = v.key;
    text += format("  %-18s %s\n", v.value.c_str(), v.sentence.c_str());
  }
  return text;
}

namespace {

std::string lie_words(const GroupsLie& lie) {
  std::string text;
  for (const std::string& level : lie.levels) text += (text.empty() ? "" : " or ") + level;
  return text;
}

constexpr double kSmall = 0.01;  // of all bytes that a device sends

}  // namespace

std::string fusion_words(const Fusion& fusion) {
  if (fusion.axes.empty()) return "";
  Table axes(
      {left("axis"), right("devices"), right("ranks apart"), left("lies in a"), right("side by side")});
  for (const AxisLies& a : fusion.axes)
    axes.row({a.axis, std::to_string(a.size), std::to_string(a.stride), lie_words(a.lies),
              std::to_string(a.lies.side_by_side)});
  Table uses({left("axes"), right("devices"), left("lies in a"), left("by"), left("of"), left("in"),
              right("times a step"), right("a device sends"), left("the largest")});
  std::int64_t all = 0, small = 0;
  for (const FusedAxes& g : fusion.groups)
    for (const FusedUse& u : g.uses) all += u.bytes;
  for (const FusedAxes& g : fusion.groups) {
    bool first = true;
    for (const FusedUse& u : g.uses) {
      if (static_cast<double>(u.bytes) < kSmall * static_cast<double>(all)) {
        small += u.bytes;
        continue;
      }
      uses.row({first ? g.axes : "", first ? std::to_string(g.devices) : "", first ? lie_words(g.lies) : "",
                u.collective, std::string(name(u.moved)), std::string(pass_words(u.pass)),
                with_separators(u.count), to_string(Bytes(u.bytes)), u.largest});
      first = false;
    }
  }
  return "\nwhere the axes of the first lie\n" + axes.str("  ") +
         "\nwhat they move together (what is less than " + percent_words(kSmall) + " of it is left out, " +
         to_string(Bytes(small)) + " in all)\n" + uses.str("  ");
}

std::string front_words(const Front& front) {
  Table table({right("devices"), right("HBM"), right("step"), right("all devices"), right("MFU"),
               left("strategy"), right("none is faster by more than")});
  for (const FrontPoint& p : front.points)
    table.row({with_separators(p.devices), to_string(p.leader.hbm), describe_time(p.leader.simulated),
               describe_time(p.leader.simulated * p.devices), percent_words(p.leader.mfu),
               words(p.leader.strategy), gap_words(p.gap)});
  std::string text =
      "\nthe front of step time against HBM and devices, all simulated; the batch is the same\n";
  if (!front.points.empty()) text += table.str("  ");
  for (const FrontCount& c : front.counts)
    if (!c.fits)
      text += format("  %d %s: ", c.devices, c.devices == 1 ? "device" : "devices") +
              (!c.is_meant         ? "no strategy is as it should be\n"
               : !c.divides        ? "no layout divides\n"
               : c.needs.value > 0 ? "nothing fits, it takes " + to_string(c.needs) + " at least\n"
                                   : "nothing fits\n");
  return text;
}

std::string what_if_words(const std::vector<WhatIf>& list) {
  Table table(
      {left("what if"), right("the first takes"), right("the best there"), right("gain"), left("which is")});
  for (const WhatIf& w : list) {
    const bool there = w.best.simulated > 0, fits = w.present.simulated > 0;
    table.row(
        {w.figure + format(" x %g", w.factor), fits ? describe_time(w.present.simulated) : "does not fit",
         there ? describe_time(w.best.simulated) : "nothing fits", fits ? format("%.3fx", w.gain()) : "",
         !there      ? ""
         : w.other() ? words(w.best.strategy)
                     : "the same"});
  }
  return "\nwhat if the machine were another\n" + table.str("  ");
}

std::string_view why_none(const BestOf& other) {
  return other.is_empty ? "cannot express it" : "nothing fits";
}

std::string comparison_words(const std::vector<BestOf>& others, const Leader& best) {
  Table table({left("space"), left("its best"), right("step"), right("MFU"), right("ours is faster")});
  for (const BestOf& other : others)
    if (const auto& first = other.leader)
      table.row({std::string(other.space), words(first->strategy), describe_time(first->simulated),
                 percent_words(first->mfu), format("%.2fx", first->simulated / best.simulated)});
    else
      table.row({std::string(other.space), std::string(why_none(other))});
  std::string text = "\n" + table.str();
  for (const BestOf& other : others)
    text += std::string(other.space) + ": " + std::string(space_named(other.space).meaning) + "\n";
  return text;
}

}  // namespace hyperrun
