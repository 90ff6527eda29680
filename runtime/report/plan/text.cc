#include "runtime/report/plan/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

#include "runtime/base/joined.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

constexpr std::size_t kRefusedRows = 3;

std::string share(Nanos part, double step) { return percent_text(static_cast<double>(part.value) / step); }

// First line of a refusal. The rest describes a job that the user has not written.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Table ranking(const Search& s, std::size_t most_rows) {
  Table table({left("strategy"), right("step"), right("forecast"), right("MFU"), right("HBM"),
               right("compute"), right("exposed comm"), right("transfer"), right("bubble"),
               right("optimizer"), right("busiest computes"), right("its bubble")});
  for (const SimulatedCandidate& l : s.leaders | std::views::take(most_rows)) {
    if (l.simulated == 0) {
      table.row({describe(l.strategy), "refused", l.forecast.time > 0 ? time_text(l.forecast.time) : ""});
      continue;
    }
    table.row({describe(l.strategy), time_text(l.simulated),
               l.forecast.time > 0 ? fmt::format("{:+.1f} %", 100 * (l.forecast.time / l.simulated - 1)) : "",
               percent_text(l.mfu), to_string(l.hbm), share(l.parts.compute, l.simulated),
               share(l.parts.communication, l.simulated), share(l.parts.transfer, l.simulated),
               share(l.parts.bubble, l.simulated), share(l.parts.optimizer, l.simulated),
               share(l.busiest.compute, l.simulated), share(l.busiest.bubble, l.simulated)});
  }
  return table;
}

// Refused strategies, the best forecasts first.
std::string refusals_text(const Search& s) {
  std::vector<const SimulatedCandidate*> refused;
  for (const SimulatedCandidate& l : s.leaders)
    if (l.simulated == 0) refused.push_back(&l);
  std::ranges::stable_sort(refused, {}, [](const SimulatedCandidate* l) {
    return l->forecast.time > 0 ? l->forecast.time : std::numeric_limits<double>::infinity();
  });
  std::string text;
  for (const SimulatedCandidate* l : refused | std::views::take(kRefusedRows))
    text += "refused: " + describe(l->strategy) + ": " + first_line(l->why_not) + "\n";
  if (refused.size() > kRefusedRows)
    text += "and " + with_separators(refused.size() - kRefusedRows) +
            " more were refused, which --json and --csv have\n";
  return text;
}

}  // namespace

bool is_informative(double gap) { return gap <= 1; }
std::string gap_text(double gap) { return is_informative(gap) ? percent_text(gap) : "no useful bound"; }
std::string certificate_text(const Search& s) {
  if (!s.is_whole) return "the search was not finished: nothing is certified";
  if (!s.bounds_hold) return "a step was shorter than its bound: nothing is certified";
  if (is_informative(s.gap()))
    return fmt::format(
        "no strategy is more than {} faster than the first on the machine that was simulated (none "
        "recomputes "
        "in more layers than it must to fit)",
        percent_text(s.gap()));
  return fmt::format(
      "no useful bound: of what was not simulated, bounds only say that it takes 1/{:.0f} of the first at "
      "least",
      std::ceil(1 + s.gap()));
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string time_text(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

std::string_view pass_text(Pass pass) {
  switch (pass) {
    case Pass::kForward: return "forward pass";
    case Pass::kBackward: return "backward pass";
    case Pass::kUpdate: return "update";
  }
  return "";
}

std::string search_text(const Search& s, std::size_t most_rows) {
  const auto simulated =
      std::ranges::count_if(s.leaders, [](const SimulatedCandidate& l) { return l.simulated > 0; });
  std::string text = fmt::format(
      "{} strategies: {} with layouts that do not divide, {} that do not fit, {} bounded, {} forecast, {} "
      "simulated\n\n",
      with_separators(s.strategies), with_separators(s.do_not_divide), with_separators(s.do_not_fit),
      with_separators(s.bounded), with_separators(s.forecast), simulated);
  text += ranking(s, most_rows).str();
  if (s.leaders.size() > most_rows)
    text += "and " + with_separators(s.leaders.size() - most_rows) + " more, which --json and --csv have\n";
  return text + "\n" + certificate_text(s) + "\n" + refusals_text(s);
}

std::string own_text(const OwnStrategy& own, const SimulatedCandidate& best) {
  const SimulatedCandidate& l = own.leader;
  const std::string name =
      std::string("as the job has it") + (own.in_space ? "" : " (not a strategy of the space)");
  if (l.simulated == 0) return name + ": " + first_line(l.why_not) + "\n";
  return fmt::format("{}: {}, {:.2f}x the first, MFU {}, HBM {}\n", name, time_text(l.simulated),
                     l.simulated / best.simulated, percent_text(l.mfu), to_string(l.hbm));
}

std::string why_text(const std::vector<Verdict>& why) {
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
    text += fmt::format("  {:<18} {}\n", v.value, v.sentence);
  }
  return text;
}

namespace {

std::string location_text(const GroupLocation& location) { return joined(location.levels, " or "); }

constexpr double kSmall = 0.01;  // part of all bytes that a device sends

}  // namespace

std::string fusion_text(const Fusion& fusion) {
  if (fusion.axes.empty()) return "";
  Table axes(
      {left("axis"), right("devices"), right("ranks apart"), left("lies in a"), right("side by side")});
  for (const AxisLocation& a : fusion.axes)
    axes.row({a.axis, std::to_string(a.size), std::to_string(a.stride), location_text(a.location),
              std::to_string(a.location.members_below)});
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
      uses.row({first ? g.axes : "", first ? std::to_string(g.devices) : "",
                first ? location_text(g.location) : "", u.collective, std::string(name(u.moved)),
                std::string(pass_text(u.pass)), with_separators(u.count), to_string(Bytes(u.bytes)),
                u.largest});
      first = false;
    }
  }
  return "\nwhere the axes of the first lie\n" + axes.str("  ") +
         "\nwhat they move together (what is less than " + percent_text(kSmall) + " of it is left out, " +
         to_string(Bytes(small)) + " in all)\n" + uses.str("  ");
}

std::string front_text(const Front& front) {
  Table table({right("devices"), right("HBM"), right("step"), right("all devices"), right("MFU"),
               left("strategy"), right("none is faster by more than")});
  for (const FrontPoint& p : front.points)
    table.row({with_separators(p.devices), to_string(p.leader.hbm), time_text(p.leader.simulated),
               time_text(p.leader.simulated * p.devices), percent_text(p.leader.mfu),
               describe(p.leader.strategy), gap_text(p.gap)});
  std::string text =
      "\nthe front of step time against HBM and devices, all simulated; the batch is the same\n";
  if (!front.points.empty()) text += table.str("  ");
  for (const FrontCount& c : front.counts)
    if (!c.fits)
      text += fmt::format("  {} {}: ", c.devices, c.devices == 1 ? "device" : "devices") +
              (!c.meets_constraints ? "no strategy is as it should be\n"
               : !c.divides         ? "no layout divides\n"
               : c.needs.value > 0  ? "nothing fits, it takes " + to_string(c.needs) + " at least\n"
                                    : "nothing fits\n");
  return text;
}

std::string what_if_text(const std::vector<WhatIf>& list) {
  Table table(
      {left("what if"), right("the first takes"), right("the best there"), right("gain"), left("which is")});
  for (const WhatIf& w : list) {
    const bool there = w.best.simulated > 0, fits = w.present.simulated > 0;
    table.row(
        {fmt::format("{} x {:g}", w.figure, w.factor), fits ? time_text(w.present.simulated) : "does not fit",
         there ? time_text(w.best.simulated) : "nothing fits", fits ? fmt::format("{:.3f}x", w.gain()) : "",
         !there      ? ""
         : w.other() ? describe(w.best.strategy)
                     : "the same"});
  }
  return "\nwhat if the machine were another\n" + table.str("  ");
}

std::string_view why_none(const BestOf& other) {
  return other.is_empty ? "cannot express it" : "nothing fits";
}

std::string comparison_text(const std::vector<BestOf>& others, const SimulatedCandidate& best) {
  Table table({left("space"), left("its best"), right("step"), right("MFU"), right("ours is faster")});
  for (const BestOf& other : others)
    if (const auto& first = other.leader)
      table.row({std::string(other.space), describe(first->strategy), time_text(first->simulated),
                 percent_text(first->mfu), fmt::format("{:.2f}x", first->simulated / best.simulated)});
    else
      table.row({std::string(other.space), std::string(why_none(other))});
  std::string text = "\n" + table.str();
  for (const BestOf& other : others)
    text += std::string(other.space) + ": " + std::string(space_named(other.space).meaning) + "\n";
  return text;
}

}  // namespace hyperrun
