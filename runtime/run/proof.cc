#include "runtime/run/proof.h"

#include <fmt/core.h>
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

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compose/shrink.h"
#include "runtime/plan/proof.h"
#include "runtime/plan/search.h"
#include "runtime/rank/room.h"
#include "runtime/report/status_line.h"
#include "runtime/report/table.h"
#include "runtime/run/drive.h"
#include "runtime/run/text_data.h"
#include "runtime/run/training_driver.h"
#include "runtime/run/training_recorder.h"

namespace hyperrun {
namespace {

// Steps to execute: the first one shows how long the real work takes, the others are measured.
constexpr std::int64_t kSteps = 3;
constexpr double kProofLearningRate = 1e-3;    // for a job that leaves it open
constexpr std::size_t kSimulatedForEach = 16;  // simulated plans from which each executed one is chosen

// A file in memory, without a name in any folder. It vanishes when its last user closes it.
class AnonymousFile {
 public:
  explicit AnonymousFile(std::span<const std::byte> content) : fd_(memfd_create("tokens", MFD_CLOEXEC)) {
    std::size_t done = 0;
    while (fd_ >= 0 && done < content.size()) {
      const ssize_t n = ::write(fd_, content.data() + done, content.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (fd_ < 0 || done < content.size())
      throw Error(Code::kUnwritable, "cannot hold the text in memory").fix("free memory on this host");
  }
  ~AnonymousFile() { ::close(fd_); }
  AnonymousFile(const AnonymousFile&) = delete;
  AnonymousFile& operator=(const AnonymousFile&) = delete;

  // The path by which other processes of this user can open the file.
  std::string path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_); }

 private:
  int fd_;
};

Session session_of(Job job, const ShrinkSpec& shrink) {
  job.run.clock = kPaced;
  job.run.shrink = shrink;
  job.run.heartbeat_seconds = 60;  // a rank that waits for a core must not count as hung
  job.training.steps = kSteps;
  if (job.training.lr == 0) job.training.lr = kProofLearningRate;
  Scaled scaled = compile_to_scale(job, compile(job).plan.peak());
  Session session;
  session.job = std::move(scaled.job);
  session.plan = std::move(scaled.plan);
  session.original = std::move(scaled.original);
  return session;
}

// A session with the smallest model with which the plan can be executed.
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

ProvenPlan execute(const Job& world, const SimulatedCandidate& leader, const std::string& job,
                   const std::function<void(std::int64_t step)>& on_step) {
  require_text(world);
  Session session = smallest_session(world, leader.strategy);
  session.run_directory = require_room(session, ranks_of_this_host(session.job.supernode.devices));
  ProvenPlan plan{leader, session.job.model, {}, {}, losses_of_one_device(session.job, kSteps)};
  const std::vector<std::int32_t> text = made_up_text(session.job, kSteps);
  const AnonymousFile tokens(std::as_bytes(std::span(text)));
  session.tokens = tokens.path();
  TrainingRecorder recorder(session.job, session.plan, {.quiet = true});
  TrainingDriver driver(session, recorder,
                        {.overhead = kProofOverhead, .keeps_results = false, .on_step = on_step});
  require_ended_well(drive(session.job, job, driver));
  plan.paced = recorder.report().paced.value();
  for (const StepReport& step : recorder.report().steps) plan.losses.push_back(step.loss.value());
  return plan;
}

}  // namespace

Proof prove(const Job& job, const Space& space, const ProofOptions& asked) {
  StatusLine line;
  line.tell("making a small world");
  Proof proof{job.model.layers, job.supernode.devices, job.training.batch, {}, {}, 0, 0};
  proof.world = proof_world(job, asked.ranks);
  const auto count = static_cast<std::size_t>(asked.plans);
  SearchOptions options{
      .space = &space,
      .leaders = static_cast<std::int32_t>(std::min<std::size_t>(count * kSimulatedForEach, 1 << 20)),
      .progress = {}};
  options.progress = [&](const std::string& what, std::int64_t n) {
    line.tell(fmt::format("small world: {} {}", with_separators(n), what));
  };
  const std::vector<SimulatedCandidate> chosen = spread_out(search(proof.world, options).leaders, count);
  if (chosen.size() < 2)
    throw Error(Code::kUsage, "the small world has no two plans that a clock could tell apart")
        .at(fmt::format("--prove {}", asked.ranks))
        .fix("prove on more ranks, or take --space all");
  for (const SimulatedCandidate& leader : chosen) {
    const std::size_t number = proof.plans.size() + 1;
    proof.plans.push_back(execute(proof.world, leader, asked.job, [&](std::int64_t step) {
      line.tell(fmt::format("plan {} of {}, step {} of {}", number, chosen.size(), step + 1, kSteps));
    }));
  }
  judge(proof);
  return proof;
}

}  // namespace hyperrun
