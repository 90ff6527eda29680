#include "runtime/report/plan/proof.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/format.h"
#include "runtime/base/rank_correlation.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

// The share by which a measured step may differ from the simulated one: the overhead, and the clock itself.
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

// The smallest and the largest error of a predicted step among all plans.
std::string times_words(const Proof& proof) {
  const auto [least, most] = std::ranges::minmax(proof.plans, {}, &ProvenPlan::off);
  const double worst = worst_off(proof);
  if (worst <= kMostOff) return format("times: measured is within %.1f %% of simulated\n", 100 * worst);
  return format(
      "times: not proven: measured is %+.1f %% to %+.1f %% off simulated; beyond %.0f %% either ranks waited "
      "for "
      "cores of this host, or the prediction is wrong; what is shown is the order\n",
      100 * least.off(), 100 * most.off(), 100 * kMostOff);
}

std::string percent(double share) { return format("%+.1f %%", 100 * share); }
std::string time_of(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

std::string world_words(const Proof& proof) {
  const Job& w = proof.world;
  const ModelSpec& small = proof.plans.front().executed;
  return format("%d of %d devices, %d of %d layers, %d of %d sequences, %s of HBM", w.supernode.devices,
                proof.job_devices, w.model.layers, proof.job_layers, w.training.batch, proof.job_batch,
                to_string(w.supernode.hbm).c_str()) +
         format("; executed to scale by a model of hidden %d, sequences of %d, vocab %d", small.hidden,
                small.sequence, small.vocab);
}

}  // namespace

double ProvenPlan::off() const { return static_cast<double>(paced.measured.value) / leader.simulated - 1; }

double ProvenPlan::difference(std::size_t step) const {
  return std::abs(losses[step] - of_one[step].loss) / std::abs(of_one[step].loss);
}

std::size_t ProvenPlan::worst_step() const {
  std::size_t worst = 0;
  for (std::size_t s = 0; s < losses.size(); ++s)  // what is no number is the worst
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
    table.row({words(p.leader.strategy), forecast > 0 ? time_of(forecast) : "", time_of(p.leader.simulated),
               to_string(p.paced.measured), percent(p.off()), format("%.6f", p.losses[s]),
               format("%.6f", p.of_one[s].loss), format("%.1e", p.difference(s)),
               format("%.1e", p.of_one[s].allowed)});
  }
  return "proof: " + world_words(proof) + "\n\n" + table.str() +
         format(
             "\norder: Spearman %.3f of simulated and measured; the best as predicted is %s behind the best "
             "as "
             "measured\n",
             proof.correlation, format("%.1f %%", 100 * proof.behind).c_str()) +
         times_words(proof);
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
        {"strategy", words(p.leader.strategy)},
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
    throw Error(Code::kNotEqual, format("in step %zu the loss is %.7g, one device's %.7g", s + 1, p.losses[s],
                                        p.of_one[s].loss))
        .at(words(p.leader.strategy))
        .legal(format("a difference of up to %.1e", p.of_one[s].allowed))
        .fix("report it, with this message and the job; another plan may be right");
  }
  if (is_in_order(proof)) return;
  throw Error(Code::kNotEqual,
              format("the plans are measured in another order than predicted: Spearman %.3f, the best "
                     "as predicted %.1f %% behind the best as measured",
                     proof.correlation, 100 * proof.behind))
      .at("--prove " + std::to_string(proof.world.supernode.devices))
      .legal(format("Spearman %.2f or more, %.0f %% behind at most", kLeastCorrelation, 100 * kMostBehind))
      .fix("let nothing else run meanwhile; else report it, with this message and the job");
}

}  // namespace hyperrun
