#include "runtime/faults/study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/faults/fault_trace.h"
#include "runtime/faults/interval.h"

namespace hyperrun {
namespace {

// Intervals beside the best one that a curve shows.
constexpr std::array kFactors{0.125, 0.25, 0.5, 0.7071, 1.0, 1.4142, 2.0, 4.0, 8.0};

// The 97.5 % quantile of Student's t (Abramowitz and Stegun, 26.7.5).
double student(double freedom) {
  constexpr double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  const double n = freedom;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

using Histories = std::vector<std::vector<Fault>>;

std::vector<FaultOutcome> walk_all(const FaultWalk& what, const Histories& histories) {
  std::vector<FaultOutcome> outcomes;
  for (const std::vector<Fault>& history : histories) outcomes.push_back(walk(what, history));
  return outcomes;
}

Spread goodput_of(const std::vector<FaultOutcome>& outcomes, double horizon) {
  std::vector<double> values;
  for (const FaultOutcome& o : outcomes) values.push_back(o.useful / horizon);
  return spread_of(values);
}

FaultOutcome mean_of(const std::vector<FaultOutcome>& outcomes) {
  FaultOutcome mean;
  const double part = 1.0 / static_cast<double>(outcomes.size());
  for (const FaultOutcome& o : outcomes) {
    for (const auto member :
         {&FaultOutcome::useful, &FaultOutcome::slower, &FaultOutcome::saving, &FaultOutcome::lost,
          &FaultOutcome::noticing, &FaultOutcome::waiting, &FaultOutcome::starting, &FaultOutcome::reading,
          &FaultOutcome::faults, &FaultOutcome::changes})
      mean.*member += o.*member * part;
  }
  return mean;
}

std::int64_t most_steps(const FaultModel& spec, const FaultedRun& run) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(spec.horizon / run.step));
}

FaultIntervals intervals_of(const FaultModel& spec, const FaultPolicy& policy, const FaultScale& scale) {
  const SaveCost& save = policy.copies ? scale.costs.copy : scale.costs.disk;
  const FaultDelays& d = spec.delays;
  FaultIntervals found;
  found.best_steps = best_interval(scale.run.step, save, scale.mtbf, most_steps(spec, scale.run));
  found.best = static_cast<double>(found.best_steps) * scale.run.step;
  found.young = young_interval(save.stall, scale.mtbf);
  found.daly = daly_interval(save.stall, scale.mtbf);
  const double read = policy.copies ? scale.costs.fetch : scale.costs.read;
  const double down =
      d.detection + (policy.person ? d.reaction : 0) + expected_restart(d.starting() + read, scale.mtbf);
  found.expected = expected_goodput(found.best, save, scale.mtbf, down);
  return found;
}

std::vector<FaultPoint> curve_of(FaultWalk what, const FaultIntervals& intervals,
                                 const Histories& histories) {
  std::vector<FaultPoint> curve;
  for (const double factor : kFactors) {
    const double steps = std::round(factor * static_cast<double>(intervals.best_steps));
    what.save_every = std::clamp<std::int64_t>(std::llround(steps), 1, most_steps(what.spec, what.run));
    const bool overlap = static_cast<double>(what.save_every) * what.run.step <
                         (what.policy.copies ? what.costs.copy : what.costs.disk).delay();
    if (overlap || (!curve.empty() && curve.back().steps == what.save_every)) continue;
    curve.push_back({what.save_every, goodput_of(walk_all(what, histories), what.spec.horizon)});
  }
  return curve;
}

FaultRow row_of(const FaultModel& spec, const FaultPolicy& policy, const FaultScale& scale,
                const Histories& histories) {
  FaultRow row{.policy = policy, .interval = intervals_of(spec, policy, scale)};
  const FaultWalk what{spec, policy, scale.run, scale.costs, row.interval.best_steps};
  const std::vector<FaultOutcome> outcomes = walk_all(what, histories);
  row.goodput = goodput_of(outcomes, spec.horizon);
  row.mean = mean_of(outcomes);
  const double all = scale.run.devices + (policy.spares ? spares_of(spec, scale.run.devices) : 0);
  row.of_all = row.goodput.mean * scale.run.devices / all;
  row.curve = curve_of(what, row.interval, histories);
  return row;
}

FaultScale scale_of(const FaultModel& spec, FaultedRun run, std::int32_t devices) {
  run.devices = devices;
  const double rate = fault_rate(spec, devices);
  FaultScale scale{.run = run, .costs = costs_of(spec, run)};
  scale.mtbf = rate > 0 ? 1 / rate : std::numeric_limits<double>::infinity();
  Histories histories;
  for (std::int32_t s = 0; s < spec.samples; ++s)
    histories.push_back(
        draw_faults(spec, devices + spares_of(spec, devices), spec.seed + static_cast<std::uint64_t>(s)));
  for (const FaultPolicy& policy : fault_policies())
    if (spec.policies.empty() || std::ranges::find(spec.policies, policy.name) != spec.policies.end())
      scale.rows.push_back(row_of(spec, policy, scale, histories));
  return scale;
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return {mean, values.size() < 2 ? 0 : student(n - 1) * std::sqrt(squares / (n - 1) / n)};
}

FaultStudy study_faults(const FaultModel& spec, const FaultedRun& run) {
  FaultStudy study{.spec = spec};
  const std::vector<std::int32_t> scales = spec.scales.empty() ? std::vector{run.devices} : spec.scales;
  for (const std::int32_t devices : scales) study.scales.push_back(scale_of(spec, run, devices));
  return study;
}

}  // namespace hyperrun
