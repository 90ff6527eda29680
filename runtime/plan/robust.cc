#include "runtime/plan/robust.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "runtime/base/parallel.h"
#include "runtime/compile/compile.h"
#include "runtime/sim/guess_effects.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

double nanos(Nanos t) { return static_cast<double>(t.value); }

// One device of each unit of a level is slow: its first.
struct SlowDevices {
  std::string words;
  SimOptions options;
};

std::vector<SlowDevices> slow_devices(const SupernodeSpec& spec) {
  const Machine machine = machine_of(spec);
  std::vector<SlowDevices> list;
  std::int64_t inside = 1;
  for (std::size_t l = 0; l < machine.levels.size() && inside < spec.devices; ++l) {
    const bool is_last = l + 1 == machine.levels.size();
    const std::int64_t unit =
        is_last ? spec.devices : std::min<std::int64_t>(machine.levels[l].devices, spec.devices);
    SlowDevices& slow = list.emplace_back();
    slow.words = "one device of each " + machine.levels[l].name + " computes 10 % slower";
    for (std::int64_t d = 0; d < spec.devices; d += unit)
      slow.options.slow[static_cast<int>(d)] = kSlowDevice;
    inside = unit;
  }
  return list;
}

bool fits(const Leader& l, const Machine& m, std::int32_t devices) {
  const std::int64_t host = m.devices_of_a_host();
  const auto on_hosts = static_cast<double>((devices + host - 1) / host * host);
  const bool in_pool =
      l.pool.value == 0 || static_cast<double>(l.pool.value) <= m.pool.capacity.value * on_hosts;
  return static_cast<double>(l.hbm.value) <= m.hbm_of_jobs() && in_pool;
}

class Trials {
 public:
  Trials(const Job& base, const std::vector<Leader>& leaders, const RobustOptions& options)
      : base_(base),
        options_(options),
        machine_(machine_of(base.supernode)),
        slow_(slow_devices(base.supernode)) {
    for (const Leader& l : leaders)
      if (l.simulated > 0 && leaders_.size() < options.plans) leaders_.push_back(&l);
  }

  Robustness run() {
    for (const Leader* l : leaders_) try_one(*l);
    name_circumstances();
    for (std::size_t p = 0; p < leaders_.size(); ++p) out_.plans[p].steps = steps(p);
    find_simpler();
    return std::move(out_);
  }

 private:
  std::int64_t guesses() const {
    Machine m = machine_;
    return std::ranges::count_if(options_.figures,
                                 [&](const FigurePath& at) { return at.in(m).has_range(); });
  }

  void tell(std::int64_t done) const {
    const std::int64_t each = guesses() + 1;
    if (options_.progress)
      options_.progress(std::ssize(out_.plans) * each + done, std::ssize(leaders_) * each);
  }

  void try_one(const Leader& leader) {
    tell(0);
    const std::shared_ptr<const Plan> compiled =
        leader.plan ? leader.plan
                    : std::make_shared<const Plan>(compile(job_of(base_, leader.strategy)).plan);
    const Plan& plan = *compiled;
    Contender c{.strategy = leader.strategy, .range = {}, .steps = {}};
    c.range = time_range(
        base_.supernode, options_.figures, time_of(plan, "train", base_.supernode),
        {.seconds = options_.seconds, .progress = [&](std::int64_t done, std::int64_t) { tell(done); }});
    if (out_.plans.empty())
      for (const RangeEnd end : {RangeEnd::kWorse, RangeEnd::kBetter})
        ends_.push_back(machine_at(end, base_.supernode, options_.figures, c.range));
    others_.push_back(others(plan));
    out_.plans.push_back(std::move(c));
  }

  // Steps of a plan with all guesses at the first plan's worse and better ends, and with slow devices.
  std::vector<double> others(const Plan& plan) const {
    std::vector<double> list(ends_.size() + slow_.size());
    parallel_for(list.size(), [&](std::size_t i) {
      SupernodeSpec spec = base_.supernode;
      if (i < ends_.size()) spec.machine = ends_[i];
      const SimOptions options = i < ends_.size() ? SimOptions{} : slow_[i - ends_.size()].options;
      list[i] = nanos(timed(plan, "train", spec, options).makespan);
    });
    return list;
  }

  // Guesses that all plans were simulated with.
  void name_circumstances() {
    out_.circumstances.emplace_back("all is as the profile has it");
    if (out_.plans.empty()) return;
    if (!out_.plans.front().range.guesses.empty()) {
      out_.circumstances.emplace_back("all guesses are at their worse ends");
      out_.circumstances.emplace_back("all guesses are at their better ends");
    }
    for (const SlowDevices& s : slow_) out_.circumstances.push_back(s.words);
    for (const GuessEffect& g : out_.plans.front().range.guesses) {
      const auto has_it = [&](const Contender& c) {
        return std::ranges::find(c.range.guesses, g.path, &GuessEffect::path) != c.range.guesses.end();
      };
      if (!std::ranges::all_of(out_.plans, has_it)) continue;
      common_.push_back(g.path);
      out_.circumstances.push_back(g.name + " is " + g.low_words);
      out_.circumstances.push_back(g.name + " is " + g.high_words);
    }
  }

  double step_at(std::size_t plan, const Machine& machine, double step) const {
    return fits(*leaders_[plan], machine, base_.supernode.devices) ? step : kDoesNotFit;
  }

  std::vector<double> steps(std::size_t plan) const {
    const StepRange& range = out_.plans[plan].range;
    std::vector<double> list{nanos(range.step)};
    const bool has_ends = !out_.plans.front().range.guesses.empty();
    for (std::size_t i = has_ends ? 0 : ends_.size(); i < others_[plan].size(); ++i)
      list.push_back(i < ends_.size() ? step_at(plan, ends_[i], others_[plan][i]) : others_[plan][i]);
    for (const std::string& path : common_) {
      const GuessEffect& g = *std::ranges::find(range.guesses, path, &GuessEffect::path);
      const FigurePath& at = *std::ranges::find(options_.figures, path, &FigurePath::path);
      for (const auto& [value, step] : {std::pair(g.low, g.at_low), std::pair(g.high, g.at_high)}) {
        Machine there = machine_;
        at.in(there).value = value;
        list.push_back(step_at(plan, there, nanos(step)));
      }
    }
    return list;
  }

  // The simplest of those that are nearly as fast as the first.
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
  const std::vector<SlowDevices> slow_;
  std::vector<const Leader*> leaders_;
  std::vector<Machine> ends_;                // worse, better
  std::vector<std::vector<double>> others_;  // by plan
  std::vector<std::string> common_;
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

std::size_t Robustness::steadiest() const {
  std::size_t best = 0;
  for (std::size_t p = 1; p < plans.size(); ++p)
    if (worst_loss(p) < worst_loss(best)) best = p;
  return best;
}

Robustness robustness(const Job& base, const std::vector<Leader>& leaders, const RobustOptions& options) {
  return Trials(base, leaders, options).run();
}

}  // namespace hyperrun
