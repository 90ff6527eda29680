#include "runtime/report/plan/proof.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/rank_correlation.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

// Tolerance of a measured step: the overhead and the clock's error.
constexpr double kMostOff = kProofOverhead + 0.02;
constexpr double kLeastCorrelation = 0.95, kMostBehind = 0.03;

bool is_as_one_device(const ProvenPlan& p) {
  const std::size_t s = p.worst_step();
  return p.difference(s) <= p.of_one[s].allowed;
}

bool is_in_order(const Proof& proof) {
  return proof.correlation >= kLeastCorrelation && proof.behind <= kMostBehind;
}

double worst_off(const Proof& proof) {
  const auto [least, most] = std::ranges::minmax(proof.plans, {}, &ProvenPlan::off);
  return std::max(std::abs(least.off()), std::abs(most.off()));
}

// The smallest and the largest prediction error among all plans.
std::string times_text(const Proof& proof) {
  const auto [least, most] = std::ranges::minmax(proof.plans, {}, &ProvenPlan::off);
  const double worst = worst_off(proof);
  if (worst <= kMostOff) return fmt::format("times: measured is within {:.1f} % of simulated\n", 100 * worst);
  return fmt::format(
      "times: not proven: measured is {:+.1f} % to {:+.1f} % off simulated; beyond {:.0f} % either ranks "
      "waited for cores of this host, or the prediction is wrong; what is shown is the order\n",
      100 * least.off(), 100 * most.off(), 100 * kMostOff);
}

std::string percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }
std::string time_of(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

std::string world_text(const Proof& proof) {
  const Job& w = proof.world;
  const ModelSpec& small = proof.plans.front().executed;
  return fmt::format("{} of {} devices, {} of {} layers, {} of {} sequences, {} of HBM", w.supernode.devices,
                     proof.job_devices, w.model.layers, proof.job_layers, w.training.batch, proof.job_batch,
                     to_string(w.supernode.hbm)) +
         fmt::format("; executed to scale by a model of hidden {}, sequences of {}, vocab {}", small.hidden,
                     small.sequence, small.vocab);
}

}  // namespace

double ProvenPlan::off() const { return static_cast<double>(paced.measured.value) / leader.simulated - 1; }

double ProvenPlan::difference(std::size_t step) const {
  return std::abs(losses[step] - of_one[step].loss) / std::abs(of_one[step].loss);
}

std::size_t ProvenPlan::worst_step() const {
  std::size_t worst = 0;
  for (std::size_t s = 0; s < losses.size(); ++s)  // NaN is the worst
    if (!(difference(s) * of_one[worst].allowed <= difference(worst) * of_one[s].allowed)) worst = s;
  return worst;
}

void judge(Proof& proof) {
  std::vector<double> predicted, measured;
  for (const ProvenPlan& p : proof.plans) {
    predicted.push_back(p.leader.simulated);
    measured.push_back(static_cast<double>(p.paced.measured.value));
  }
  proof.correlation = rank_correlation(predicted, measured);
  proof.behind = measured.front() / std::ranges::min(measured) - 1;
}

std::string to_text(const Proof& proof) {
  Table table({left("executed on the paced clock"), right("forecast"), right("simulated"), right("measured"),
               right("difference"), right("loss"), right("one device"), right("differs by"),
               right("allowed")});
  for (const ProvenPlan& p : proof.plans) {
    const std::size_t s = p.worst_step();
    const double forecast = p.leader.forecast.time;
    table.row({describe(p.leader.strategy), forecast > 0 ? time_of(forecast) : "",
               time_of(p.leader.simulated), to_string(p.paced.measured), percent(p.off()),
               fmt::format("{:.6f}", p.losses[s]), fmt::format("{:.6f}", p.of_one[s].loss),
               fmt::format("{:.1e}", p.difference(s)), fmt::format("{:.1e}", p.of_one[s].allowed)});
  }
  const std::string order = fmt::format(
      "order: Spearman {:.3f} of simulated and measured; the best as predicted is {:.1f} % behind the best "
      "as "
      "measured\n",
      proof.correlation, 100 * proof.behind);
  return fmt::format("proof: {}\n\n{}\n{}{}", world_text(proof), table.str(), order, times_text(proof));
}

Json to_json(const Proof& proof) {
  const Job& w = proof.world;
  Json json{{"devices", w.supernode.devices},
            {"layers", w.model.layers},
            {"batch", w.training.batch},
            {"hbm_bytes", w.supernode.hbm.value},
            {"pool_bytes", w.supernode.pool.value},
            {"spearman", proof.correlation},
            {"best_behind", proof.behind},
            {"proven",
             {{"losses", std::ranges::all_of(proof.plans, is_as_one_device)},
              {"order", is_in_order(proof)},
              {"times", worst_off(proof) <= kMostOff}}}};
  for (const ProvenPlan& p : proof.plans) {
    Json plan{
        {"strategy", describe(p.leader.strategy)},
        {"forecast_ns", p.leader.forecast.time > 0 ? Json(p.leader.forecast.time) : Json()},
        {"simulated_ns", p.leader.simulated},
        {"measured_ns", p.paced.measured.value},
        {"dilation", p.paced.dilation},
        {"executed",
         {{"hidden", p.executed.hidden}, {"sequence", p.executed.sequence}, {"vocab", p.executed.vocab}}}};
    for (std::size_t s = 0; s < p.losses.size(); ++s) {
      Json step;
      put_number(step, "loss", p.losses[s]);
      put_number(step, "one_device", p.of_one[s].loss);
      put_number(step, "allowed", p.of_one[s].allowed);
      plan["steps"].push_back(std::move(step));
    }
    json["plans"].push_back(std::move(plan));
  }
  return json;
}

void require_proven(const Proof& proof) {
  for (const ProvenPlan& p : proof.plans) {
    if (is_as_one_device(p)) continue;
    const std::size_t s = p.worst_step();
    throw Error(Code::kNotEqual, fmt::format("in step {} the loss is {:.7g}, one device's {:.7g}", s + 1,
                                             p.losses[s], p.of_one[s].loss))
        .at(describe(p.leader.strategy))
        .legal(fmt::format("a difference of up to {:.1e}", p.of_one[s].allowed))
        .fix("report it, with this message and the job; another plan may be right");
  }
  if (is_in_order(proof)) return;
  throw Error(Code::kNotEqual,
              fmt::format("the plans are measured in another order than predicted: Spearman {:.3f}, the best "
                          "as predicted {:.1f} % behind the best as measured",
                          proof.correlation, 100 * proof.behind))
      .at(fmt::format("--prove {}", proof.world.supernode.devices))
      .legal(fmt::format("Spearman {:.2f} or more, {:.0f} % behind at most", kLeastCorrelation,
                         100 * kMostBehind))
      .fix("let nothing else run meanwhile; else report it, with this message and the job");
}

}  // namespace hyperrun
