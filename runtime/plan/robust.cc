#include "runtime/plan/robust.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "runtime/base/parallel.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/guess_effects.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

double nanos(Nanos t) { return static_cast<double>(t.value); }

MemoryUse memory_use(const SimulatedCandidate& l) { return {l.hbm, l.pool}; }

// The `most` fastest leaders, and the fastest that has room on `least`.
std::vector<const SimulatedCandidate*> contenders(const Job& base,
                                                  const std::vector<SimulatedCandidate>& leaders,
                                                  std::size_t most, const Machine& least) {
  std::vector<const SimulatedCandidate*> list;
  bool one_has_room = false;
  for (const SimulatedCandidate& l : leaders) {
    if (l.simulated == 0) continue;
    const bool has = has_room(least, base.supernode.devices, memory_use(l));
    if (list.size() < most || (has && !one_has_room)) list.push_back(&l);
    one_has_room |= has;
  }
  return list;
}

// In each unit, the device that computes longest. It has the least slack, so slowing it costs most.
std::map<int, double> slow_devices(const SimResult& known, std::int64_t unit) {
  std::map<int, double> slow;
  const auto devices = static_cast<std::int64_t>(known.class_of.size());
  for (std::int64_t first = 0; first < devices; first += unit) {
    std::int64_t longest = first;
    for (std::int64_t d = first; d < std::min(devices, first + unit); ++d)
      if (known.breakdown(static_cast<int>(d)).compute > known.breakdown(static_cast<int>(longest)).compute)
        longest = d;
    slow[static_cast<int>(longest)] = kSlowDevice;
  }
  return slow;
}

// A level of the machine; one device in each of its units is slow.
struct SlowLevel {
  std::string name;
  std::int64_t unit = 1;  // devices
};

std::vector<SlowLevel> slow_levels(const Machine& machine, std::int64_t devices) {
  std::vector<SlowLevel> list;
  std::int64_t inside = 1;
  for (std::size_t l = 0; l < machine.levels.size() && inside < devices; ++l) {
    const bool is_last = l + 1 == machine.levels.size();
    const std::int64_t unit = is_last ? devices : std::min<std::int64_t>(machine.levels[l].devices, devices);
    list.push_back({machine.levels[l].name, unit});
    inside = unit;
  }
  return list;
}

// A leader's plan, compiled and ready to be simulated on other machines.
class SimulatedPlan {
 public:
  SimulatedPlan(const Job& base, const SimulatedCandidate& leader)
      : base_(base),
        use_(memory_use(leader)),
        plan_(leader.plan ? leader.plan
                          : std::make_shared<const Plan>(compile(job_of(base, leader.strategy)).plan)),
        time_(*plan_, "train", base.supernode) {}

  std::size_t guesses_in_time() const { return time_.guesses_in_time(); }

  StepRange range(const std::vector<FigurePath>& figures, std::size_t most,
                  const std::function<void(std::int64_t, std::int64_t)>& progress) const {
    return time_range(base_.supernode, figures, time_, {.use = use_, .most = most, .progress = progress});
  }

  std::vector<double> steps_on(const std::vector<Machine>& machines) const {
    std::vector<double> steps(machines.size(), kDoesNotFit);
    parallel_for(machines.size(), [&](std::size_t i) {
      if (!has_room(machines[i], base_.supernode.devices, use_)) return;
      SupernodeSpec there = base_.supernode;
      there.machine = machines[i];
      steps[i] = nanos(time_(there));
    });
    return steps;
  }

  std::vector<double> steps_with_slow_devices(const std::vector<SlowLevel>& levels) const {
    const Topology topology = hosts_of(machine_of(base_.supernode), base_.supernode.devices);
    const SimResult known = simulate(*plan_, "train", base_.supernode, topology);
    std::vector<double> steps(levels.size());
    parallel_for(levels.size(), [&](std::size_t i) {
      SimOptions options;
      options.slow = slow_devices(known, levels[i].unit);
      steps[i] = nanos(timed(*plan_, "train", base_.supernode, options).makespan);
    });
    return steps;
  }

 private:
  const Job& base_;
  const MemoryUse use_;
  const std::shared_ptr<const Plan> plan_;
  const ProgramTime time_;
};

class Comparison {
 public:
  Comparison(const Job& base, const std::vector<SimulatedCandidate>& leaders, const RobustOptions& options)
      : base_(base),
        options_(options),
        machine_(machine_of(base.supernode)),
        levels_(slow_levels(machine_, base.supernode.devices)) {
    const Machine least = with_least_room(base.supernode, options.figures);
    out_.least_hbm = least.hbm_of_jobs();
    leaders_ = contenders(base, leaders, options.plans, least);
  }

  // One plan at a time, as a large one takes gigabytes.
  Robustness run() {
    for (const SimulatedCandidate* l : leaders_) try_one(*l);
    find_simpler();
    return std::move(out_);
  }

 private:
  void try_one(const SimulatedCandidate& leader) {
    const SimulatedPlan plan(base_, leader);
    const bool is_first = out_.plans.empty();
    // The first plan limits the number of guesses, so that all plans are compared in the same circumstances.
    if (is_first) most_ = plan.guesses_in_time();
    const auto progress = [&](std::int64_t done, std::int64_t all) {
      if (options_.progress)
        options_.progress(std::ssize(out_.plans) * all + done, std::ssize(leaders_) * all);
    };
    Contender c{leader.strategy, plan.range(options_.figures, most_, progress), {}};
    if (is_first) name_circumstances(c.range);
    c.steps = {nanos(c.range.step)};
    std::ranges::copy(plan.steps_on(ends_), std::back_inserter(c.steps));
    std::ranges::copy(plan.steps_with_slow_devices(levels_), std::back_inserter(c.steps));
    for (const std::string& path : guesses_) {
      const GuessEffect& g = *std::ranges::find(c.range.guesses, path, &GuessEffect::path);
      c.steps.push_back(g.fits_low ? nanos(g.at_low) : kDoesNotFit);
      c.steps.push_back(g.fits_high ? nanos(g.at_high) : kDoesNotFit);
    }
    out_.plans.push_back(std::move(c));
  }

  // `range`: of the first plan, which tells the worse ends.
  void name_circumstances(const StepRange& range) {
    std::vector<std::string>& names = out_.circumstances;
    names.emplace_back("all is as the profile has it");
    if (!range.guesses.empty()) {
      names.emplace_back("all guesses are at their worse ends");
      names.emplace_back("all guesses are at their better ends");
      for (const RangeEnd end : {RangeEnd::kWorse, RangeEnd::kBetter})
        ends_.push_back(machine_at(end, base_.supernode, options_.figures, range));
    }
    for (const SlowLevel& level : levels_)
      names.push_back("the busiest device of each " + level.name + " computes 10 % slower");
    for (const GuessEffect& g : range.guesses) {
      guesses_.push_back(g.path);
      names.push_back(g.name + " is " + g.low_words);
      names.push_back(g.name + " is " + g.high_words);
    }
  }

  // Finds the simplest plan that is nearly as fast as the first.
  void find_simpler() {
    const std::vector<Contender>& plans = out_.plans;
    for (std::size_t p = 1; p < plans.size(); ++p) {
      const double behind = plans[p].steps.front() / plans.front().steps.front() - 1;
      const Strategy& than = plans[out_.simpler ? out_.simpler->plan : 0].strategy;
      if (behind > kNearly || simpler_because(plans[p].strategy, than).empty()) continue;
      out_.simpler = {p, behind, simpler_because(plans[p].strategy, plans.front().strategy)};
    }
  }

  const Job& base_;
  const RobustOptions& options_;
  const Machine machine_;
  const std::vector<SlowLevel> levels_;
  std::vector<const SimulatedCandidate*> leaders_;
  std::size_t most_ = 0;              // number of guesses simulated
  std::vector<Machine> ends_;         // worse, better
  std::vector<std::string> guesses_;  // paths of guesses
  Robustness out_;
};

}  // namespace

std::size_t Robustness::fastest_in(std::size_t circumstance) const {
  std::size_t best = 0;
  for (std::size_t p = 1; p < plans.size(); ++p)
    if (plans[p].steps[circumstance] < plans[best].steps[circumstance]) best = p;
  return best;
}

double Robustness::worst_loss(std::size_t plan) const {
  double worst = 0;
  for (std::size_t c = 0; c < circumstances.size(); ++c) {
    const double best = plans[fastest_in(c)].steps[c];
    if (std::isfinite(best)) worst = std::max(worst, plans[plan].steps[c] / best - 1);
  }
  return worst;
}

bool Robustness::fits_everywhere(std::size_t plan) const {
  return std::ranges::all_of(plans[plan].steps, [](double step) { return std::isfinite(step); });
}

std::vector<std::size_t> Robustness::without_room() const {
  std::vector<std::size_t> list;
  for (std::size_t c = 0; c < circumstances.size(); ++c)
    if (!plans.empty() && !std::isfinite(plans[fastest_in(c)].steps[c])) list.push_back(c);
  return list;
}

std::size_t Robustness::steadiest() const {
  std::size_t best = 0;
  for (std::size_t p = 1; p < plans.size(); ++p)
    if (worst_loss(p) < worst_loss(best)) best = p;
  return best;
}

Robustness robustness(const Job& base, const std::vector<SimulatedCandidate>& leaders,
                      const RobustOptions& options) {
  return Comparison(base, leaders, options).run();
}

}  // namespace hyperrun
