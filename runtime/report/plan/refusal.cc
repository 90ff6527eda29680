#include "runtime/report/plan/refusal.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/plan/device_counts.h"
#include "runtime/plan/feasible.h"
#include "runtime/report/plan/words.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& s : list) text += (text.empty() ? "" : "; or ") + s;
  return text;
}

Error nothing_divides(const Job& job, const Space& space, const Search& s) {
  const std::string devices = std::to_string(job.supernode.devices);
  std::string cause = s.strategies == 0
                          ? devices + " devices are no product of sizes that divide the batch " +
                                "and what of the model is split"
                          : "none of " + with_separators(s.strategies) + " strategies for " + devices +
                                " devices has layouts that divide";
  if (const std::string why = what_divides_nothing(job, space); !why.empty()) cause += ": mostly " + why;
  Error error(Code::kBadLayout, cause);
  error.at("supernode.devices");
  std::string legal;
  for (const std::int32_t n : devices_that_divide(job, space))
    legal += (legal.empty() ? "" : ", ") + std::to_string(n);
  if (!legal.empty()) error.legal(legal + " (the next that divide)");
  return error.fix(std::string("take ") + (legal.empty() ? "" : "one of these numbers, or ") +
                   "a training.batch, model.sequence, heads and widths that the devices divide");
}

std::string with_plan(const std::string& change, const Leader& l) {
  return change + ": " + describe_time(l.simulated) + " a step with " + words(l.strategy);
}

// Beyond what the job's profile has, the machine would be another one.
std::string of_profile(const Job& job, double has, Bytes takes) {
  return job.supernode.machine && static_cast<double>(takes.value) > has
             ? " (more than a device of the profile \"" + job.supernode.machine->name +
                   "\" has: that takes another profile)"
             : "";
}

std::string of_constraints(const Space& space) {
  std::string text;
  for (const Constraint& c : space.only) text += " --only " + c.text;
  return text;
}

bool is_innermost(const Dimension& d) { return d.key == "innermost"; }

// What it has in the dimension, in one order of its axes or another.
std::set<std::int32_t> values_in_all_orders(const Dimension& d, const Strategy& s) {
  if (!is_innermost(d)) return {d.value(s)};
  std::set<std::int32_t> axes;
  for (std::size_t a = 0; a < kPlanAxes; ++a)
    if (s[static_cast<PlanAxis>(a)] > 1) axes.insert(static_cast<std::int32_t>(a));
  if (axes.empty()) axes.insert(d.value(s));
  return axes;
}

// As far as it is known before all is searched: some order of the axes has each in use as the innermost.
bool may_meet(const Space& space, const Strategy& s) {
  return meets(space.only, s, Settled::kBounded) && std::ranges::all_of(space.only, [&](const Constraint& c) {
           const Dimension& d = dimensions()[c.dimension];
           if (!is_innermost(d)) return true;
           const std::set<std::int32_t> axes = values_in_all_orders(d, s);
           return std::ranges::any_of(c.values, [&](std::int32_t v) { return axes.contains(v); });
         });
}

// What strategies have in the dimension of the constraint, as far as others let them; nothing where that is
// what it wants.
std::string values_of(const Job& job, const Space& others, const Constraint& constraint) {
  const Dimension& d = dimensions()[constraint.dimension];
  const bool is_memory = d.key == "memory";  // known of none
  if (d.settled > Settled::kBounded && !is_innermost(d) && !is_memory)
    return "";  // known when all is searched
  std::set<std::int32_t> values;
  each_strategy(job, others, [&](Strategy s) {
    if (may_meet(others, s)) values.merge(values_in_all_orders(d, s));
    if (!next_after(s.recompute) || most_layers(s, job.model.layers) == 1) return;
    s.deeper = 1;
    if (may_meet(others, s)) values.merge(values_in_all_orders(d, s));
  });
  // Where some have what it wants, it is another one that they do not meet.
  const bool is_met =
      std::ranges::any_of(constraint.values, [&](std::int32_t v) { return values.contains(v); });
  if (is_met && !is_innermost(d)) return "";
  std::string text;
  for (const std::int32_t v : values) text += (text.empty() ? "" : ", ") + d.words(v);
  return text;
}

// Two constraints of one dimension that no value meets both of: what was meant was either.
std::optional<std::string> either(const Space& space) {
  for (const Constraint& a : space.only)
    for (const Constraint& b : space.only) {
      const bool disjoint = std::ranges::find_first_of(a.values, b.values) == a.values.end();
      if (&a == &b || a.dimension != b.dimension || !disjoint) continue;
      return "--only " + a.text + "," + b.text.substr(b.text.find('=') + 1) + " for either of them";
    }
  return std::nullopt;
}

// Something is to move, and nothing does.
bool wants_to_move(const Job& job, const Space& space) {
  const auto none = static_cast<std::int32_t>(PlanMemory::kNone);
  return (!space.may_offload() || job.supernode.pool.value == 0) &&
         std::ranges::any_of(space.only, [&](const Constraint& c) {
           return dimensions()[c.dimension].key == "memory" &&
                  std::ranges::find(c.values, none) == c.values.end();
         });
}

// No strategy is as it should be, before anything is asked of layouts and memory.
Error contradictory(const Job& job, const Space& space) {
  std::string legal;
  for (std::size_t i = 0; i < space.only.size(); ++i) {
    Space others = space;
    others.only.erase(others.only.begin() + static_cast<std::ptrdiff_t>(i));
    const std::size_t dimension = space.only[i].dimension;
    if (const std::string values = values_of(job, others, space.only[i]); !values.empty())
      legal += (legal.empty() ? "" : "; or ") + std::string(dimensions()[dimension].key) + "=" + values;
  }
  Error error(Code::kUsage, "no strategy of the space is so");
  error.at(of_constraints(space).substr(1));
  if (!legal.empty()) error.legal(legal + (space.only.size() > 1 ? " beside the others" : ""));
  const auto is_of = [&](std::string_view key) {
    return std::ranges::any_of(space.only,
                               [&](const Constraint& c) { return dimensions()[c.dimension].key == key; });
  };
  if (const auto both = either(space)) return error.fix("leave one of them out, or write " + *both);
  const std::string leave = space.only.size() > 1 ? "leave one of them out" : "leave it out";
  if (is_of("experts") && job.model.experts.count == 0)
    return error.fix(leave + ": the model has no experts");
  std::string fix = leave + ", or take a number of devices and a batch that allow for it";
  if (is_of("memory"))
    fix += !space.offload ? "; in the space \"" + std::string(space.name) + "\" tensors stay in HBM"
           : job.supernode.pool.value == 0 ? "; without a pool tensors stay in HBM"
                                           : "; tensors leave HBM only where it has no room for them";
  if (is_of("experts") && job.run.generate.tokens > 0)
    fix += "; where run.generate is set, experts are not spread over the tensor axis (ep_tp)";
  return error.fix(fix);
}

Error too_large(const Job& job, const Forecasted& best) {
  const Strategy& s = best.strategy;
  const std::int32_t m = micro_batches(s, job.training.batch);
  const std::int64_t most = s.memory == PlanMemory::kNone ? kMostPasses : kMostMovedPasses;
  Error error(Code::kDoesNotFit,
              "a step of what is best by its forecast is too large to be simulated: " + with_separators(m) +
                  " micro-batches through " + with_separators(job.model.layers) + " layers, up to " +
                  with_separators(most) + " passes through a layer are; it is forecast with " +
                  describe_time(best.forecast.time) + ": " + words(s));
  error.at("training.batch");
  const std::int64_t fewer = most / job.model.layers;
  if (fewer > 0)
    error.legal("at most " + std::to_string(job.training.batch / m * fewer) + " under this strategy");
  return error.fix(
      "plan a smaller batch or fewer layers: of so many micro-batches the ranking is nearly the same");
}

// A pool is the devices' together: what a job says of it has to grow with them.
std::string of_their_pool(const SupernodeSpec& has, const Remedy& more) {
  if (more.leader.pool.value == 0) return "";
  const auto each = has.machine ? static_cast<std::int64_t>(has.machine->pool.capacity.value) : 0;
  const bool is_said =
      has.pool.value > 0 && (has.pool.value != each * has.devices || more.leader.pool > has.pool);
  return is_said ? " with supernode.pool \"" + std::to_string(more.supernode.pool.value) + " B\"" : "";
}

// By this refused ones are near: what is refused for another reason than its size comes last.
std::pair<bool, Bytes> needs(const Leader& l) { return {l.fits, l.hbm}; }

}  // namespace

bool is_contradictory(const Job& job, const Space& space) {
  return either(space).has_value() || wants_to_move(job, space);
}

void require_constraints_that_agree(const Job& job, const Space& space) {
  if (is_contradictory(job, space)) throw contradictory(job, space);
}

// What has values of dimensions that are settled late may turn out not to be there; of others it is known at
// once, as it is that nothing leaves HBM where that is not wanted.
bool none_is_so(const Space& space, const Search& s) {
  const auto late = [&](const Constraint& c) {
    const Dimension& d = dimensions()[c.dimension];
    return d.settled > Settled::kBounded && (d.key != "memory" || space.may_offload());
  };
  return !space.only.empty() && !s.too_large && s.left_for_memory == 0 &&
         (s.strategies == 0 || (s.leaders.empty() && s.bounded > 0 && std::ranges::any_of(space.only, late)));
}

Error nothing_feasible(const Job& job, const Space& space, const Search& s, StatusLine& status) {
  if (none_is_so(space, s)) {
    Space all = space;
    all.only.clear();
    return divides(job, all) ? contradictory(job, space) : nothing_divides(job, all, s);
  }
  if (s.too_large && std::ranges::none_of(s.leaders, [](const Leader& l) { return !l.fits; }))
    return too_large(job, *s.too_large);
  if (s.modest.empty() && s.leaders.empty()) return nothing_divides(job, space, s);
  const SupernodeSpec& has = job.supernode;
  // Of those that may fit by their bounds not all are compiled.
  const char* fits = s.bounded == 0 ? " fits into " : " was found that fits into ";
  std::string cause =
      "no strategy of " + with_separators(s.strategies) + fits + to_string(has.hbm) + " of HBM a device" +
      (has.pool.value > 0 && space.may_offload() ? " and a pool of " + to_string(has.pool) : "");
  if (!space.only.empty()) cause += " with" + of_constraints(space);
  if (s.do_not_divide > 0)
    cause += " (" + with_separators(s.do_not_divide) + " have layouts that do not divide)";
  if (!s.leaders.empty()) {
    const Leader& l = *std::ranges::min_element(s.leaders, {}, needs);
    cause += "; the nearest: " + words(l.strategy) + ": " + l.why_not;
  } else {  // of what moves, less may do
    const bool may_move = has.pool.value > 0 && space.may_offload();
    const Needs& n = *std::ranges::min_element(s.modest, {}, &Needs::least);
    cause += std::string("; the nearest") + (may_move ? " that moves nothing" : "") +
             ", by its bound: " + words(n.strategy) + ": at least " + to_string(n.least);
  }
  Error error(Code::kDoesNotFit, cause);
  error.at("supernode.hbm");
  FeasibleOptions options{.space = &space};
  options.progress = [&](const std::string& what, std::int64_t n) {
    status.tell(with_separators(n) + " " + what);
  };
  const Feasible f = nearest_feasible(job, s, options);
  status.clear();
  std::vector<std::string> fixes;
  if (f.more_devices)
    fixes.push_back(with_plan("take " + with_separators(f.more_devices->supernode.devices) + " devices" +
                                  of_their_pool(has, *f.more_devices),
                              f.more_devices->leader));
  if (f.more_hbm) {
    const Bytes hbm = f.more_hbm->supernode.hbm;
    const double most = has.machine ? has.machine->hbm_of_jobs() : 0;
    error.legal("\"" + std::to_string(hbm.value) + " B\" or more, " + to_string(hbm - has.hbm) +
                " more: the least that was found to do" + of_profile(job, most, hbm));
    fixes.push_back(with_plan("raise supernode.hbm by " + to_string(hbm - has.hbm) + " to \"" +
                                  std::to_string(hbm.value) + " B\"" + of_profile(job, most, hbm),
                              f.more_hbm->leader));
  }
  if (f.more_pool) {
    const Bytes pool = f.more_pool->supernode.pool;
    const double most = has.machine ? has.machine->pool.capacity.value * has.devices : 0;
    fixes.push_back(with_plan(
        "raise supernode.pool to \"" + std::to_string(pool.value) + " B\"" + of_profile(job, most, pool),
        f.more_pool->leader));
  }
  if (fixes.empty())
    fixes.push_back("make the model, its sequence or the batch smaller: up to " +
                    with_separators(f.most_devices) + " devices do not hold it");
  return error.fix(joined(fixes));
}

}  // namespace hyperrun
