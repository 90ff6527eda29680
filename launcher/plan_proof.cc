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
#include "runtime/compile/compile.h"
#include "runtime/compile/schedule.h"
#include "runtime/compile/shrink.h"
#include "runtime/control/controller.h"
#include "runtime/plan/proof.h"
#include "runtime/plan/search.h"
#include "runtime/report/status_line.h"
#include "runtime/report/table.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {
namespace {

// One that shows how much work there is, and those that are measured.
constexpr std::int64_t kSteps = 3;
constexpr double kRate = 1e-3;                 // of learning
constexpr std::size_t kSimulatedForEach = 16;  // of those that are executed: the choice that there is

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
class ProofDriver : public tasks::Driver {
 public:
  ProofDriver(const Session& session, std::function<void(std::int64_t step)> on_step)
      : session_(session), pacing_(session, "train", kProofOverhead), on_step_(std::move(on_step)) {}

  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>&) override {
    return {{{0, "session", to_bytes(std::span(&session_, 1))}, {}}};
  }

  std::optional<tasks::Invocation> next_invocation() override {
    if (issued_ > kSteps || issued_ > done_) return std::nullopt;
    tasks::Invocation i;
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

  void on_done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) override {
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

}  // namespace

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

}  // namespace hyperrun
