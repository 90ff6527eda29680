#include "launcher/plan_proof.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "launcher/drive.h"
#include "launcher/mpi_start.h"
#include "launcher/pacing.h"
#include "launcher/protocol.h"
#include "launcher/results.h"
#include "launcher/text_data.h"
#include "runtime/base/error.h"
#include "runtime/base/format.h"
#include "runtime/base/rank_correlation.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/schedule.h"
#include "runtime/compile/shrink.h"
#include "runtime/control/controller.h"
#include "runtime/plan/proof.h"
#include "runtime/report/status_line.h"
#include "runtime/report/table.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {
namespace {

// One that shows how much work there is, and those that are measured.
constexpr std::int64_t kSteps = 3;
constexpr double kRate = 1e-3;  // of learning
// Of an instruction's time: what starting and waking may take. It makes all plans longer by nearly the same.
constexpr double kOverhead = 0.03;
constexpr std::size_t kSimulatedForEach = 16;  // of those that are executed: the choice that there is
// Of a simulated step, that a measured one may differ: that overhead, and the clock itself.
constexpr double kMostOff = kOverhead + 0.02;
constexpr double kLeastCorrelation = 0.95, kMostBehind = 0.03;

// A file without a name, which is gone when nobody has it open.
class NamelessFile {
 public:
  explicit NamelessFile(std::span<const std::byte> content) : fd_(memfd_create("tokens", MFD_CLOEXEC)) {
    std::size_t done = 0;
    while (fd_ >= 0 && done < content.size()) {
      const ssize_t n = ::write(fd_, content.data() + done, content.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (fd_ < 0 || done < content.size())
      throw Error(Code::kUnwritable, "cannot hold the text in memory").fix("free memory on this host");
  }
  ~NamelessFile() { ::close(fd_); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  // As other processes of this user find it.
  std::string path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// The order of a run: init, and step after step.
class ProofDriver : public control::Driver {
 public:
  ProofDriver(const Session& session, std::function<void(std::int64_t step)> on_step)
      : session_(session), pacing_(session, "train", kOverhead), on_step_(std::move(on_step)) {}

  std::vector<Assignment> on_ready(const std::vector<control::DeviceInfo>&) override {
    return {{{0, "session", to_bytes(std::span(&session_, 1))}, {}}};
  }

  std::optional<control::Invocation> next_invocation() override {
    if (issued_ > kSteps || issued_ > done_) return std::nullopt;
    control::Invocation i;
    i.id = issued_++;
    i.program = static_cast<std::int32_t>(session_.plan.program_index(i.id == 0 ? "init" : "train"));
    if (i.id == 0) return i;
    i.step = i.id - 1;
    on_step_(i.step);
    i.scalars[kLearningRate] = learning_rate(session_.job.training, i.step);
    i.scalars[kTraced] = std::int64_t{1};
    if (pacing_.dilation() > 0) i.scalars[kDilation] = pacing_.dilation();
    return i;
  }

  void on_done(const control::Invocation& invocation,
               std::span<const control::InvocationDone> results) override {
    done_ = invocation.id + 1;
    if (invocation.id == 0) return;
    losses_.push_back(output(results, "loss"));
    pacing_.add(stats_of(results));
  }

  void on_failed(const Error&) override {}  // the outcome has it

  const PacedUse& paced() const { return pacing_.use(); }
  const std::vector<double>& losses() const { return losses_; }

 private:
  const Session& session_;
  Pacing pacing_;
  std::function<void(std::int64_t step)> on_step_;
  std::vector<double> losses_;
  std::int64_t issued_ = 0, done_ = 0;
};

Session session_of(Job job, const ShrinkSpec& shrink) {
  job.run.clock = kPaced;
  job.run.shrink = shrink;
  job.run.heartbeat_seconds = 60;  // ranks that wait for a core are no hung ones
  job.training.steps = kSteps;
  if (job.training.lr == 0) job.training.lr = kRate;  // a job that is only planned may leave it open
  Scaled scaled = compile_to_scale(job, compile(job).plan.peak());
  Session session;
  session.job = std::move(scaled.job);
  session.plan = std::move(scaled.plan);
  session.original = std::move(scaled.original);
  return session;
}

// The smallest model that the plan can be executed with.
Session smallest_session(const Job& world, const Strategy& strategy) {
  const Job job = job_of(world, strategy);
  const std::vector<ShrinkSpec> shrinks = proof_shrinks(world);
  for (std::size_t i = 0;; ++i) try {
      return session_of(job, shrinks[i]);
    } catch (const Error& e) {
      if (e.code() == Code::kInternal || i + 1 == shrinks.size()) throw;
    }
}

void require_ended_well(const control::Outcome& outcome) {
  if (outcome.error) throw *outcome.error;
  if (outcome.signal == 0) return;
  std::fprintf(stderr, "%s\n", outcome.reason().c_str());
  std::signal(outcome.signal, SIG_DFL);
  std::raise(outcome.signal);
}

ProvenPlan execute(const Job& world, const Leader& leader, const std::string& job,
                   const std::function<void(std::int64_t step)>& on_step) {
  require_text(world);
  Session session = smallest_session(world, leader.strategy);
  session.run_directory = require_room(session.job, session.plan);
  ProvenPlan plan{leader, session.job.model, {}, {}, losses_of_one_device(session.job, kSteps)};
  const std::vector<std::int32_t> text = made_up_text(session.job, kSteps);
  const NamelessFile tokens(std::as_bytes(std::span(text)));
  session.tokens = tokens.path();
  ProofDriver driver(session, on_step);
  require_ended_well(drive(session.job, job, driver));
  plan.paced = driver.paced();
  plan.losses = driver.losses();
  return plan;
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

// By how much the clock was off what was predicted, of all plans the least and the most.
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

Proof prove(const Job& job, const Space& space, const PlanArguments& arguments) {
  StatusLine line;
  line.tell("making a small world");
  Proof proof{job.model.layers, job.supernode.devices, job.training.batch, {}, {}, 0, 0};
  proof.world = proof_world(job, arguments.prove);
  const auto count = static_cast<std::size_t>(arguments.prove_plans);
  SearchOptions options{
      .space = &space,
      .leaders = static_cast<std::int32_t>(std::min<std::size_t>(count * kSimulatedForEach, 1 << 20)),
      .progress = {}};
  options.progress = [&](const std::string& what, std::int64_t n) {
    line.tell("small world: " + with_separators(n) + " " + what);
  };
  const std::vector<Leader> chosen = spread_out(search(proof.world, options).leaders, count);
  if (chosen.size() < 2)
    throw Error(Code::kUsage, "the small world has no two plans that a clock could tell apart")
        .at("--prove " + std::to_string(arguments.prove))
        .fix("prove on more ranks, or take --space all");
  for (const Leader& leader : chosen) {
    const std::string which = format("plan %zu of %zu, step ", proof.plans.size() + 1, chosen.size());
    proof.plans.push_back(execute(proof.world, leader, arguments.job, [&](std::int64_t step) {
      line.tell(which +
                format("%lld of %lld", static_cast<long long>(step + 1), static_cast<long long>(kSteps)));
    }));
  }
  judge(proof);
  return proof;
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
