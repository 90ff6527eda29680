// hyperrun generate JOB --paced: executes the passes of a generation on the paced clock. Weights are zero and
// prompts arbitrary: only the times of instructions and the memory are measured.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "runtime/advise/fit.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compose/shrink.h"
#include "runtime/generate/generate.h"
#include "runtime/rank/protocol.h"
#include "runtime/rank/room.h"
#include "runtime/report/generation.h"
#include "runtime/report/paced.h"
#include "runtime/run/drive.h"
#include "runtime/run/failure.h"
#include "runtime/run/generation.h"
#include "runtime/run/paced_clock.h"
#include "runtime/run/results.h"
#include "runtime/run/session_driver.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

// Passes of each kind: the first one shows how long the real work takes, the others are measured.
constexpr std::int64_t kPasses = 4;

// The paced passes of one Program.
class PacedProgram {
 public:
  PacedProgram(const Session& session, const std::string& name, std::int64_t sequences, std::int64_t tokens)
      : paced_clock_(session, name), name_(name), sequences_(sequences), tokens_(tokens) {}

  void prepare(tasks::Invocation& invocation) const {
    invocation.scalars[kTraced] = std::int64_t{1};
    if (paced_clock_.dilation() > 0) invocation.scalars[kDilation] = paced_clock_.dilation();
  }

  void add(std::span<const InvocationStats> stats) { paced_clock_.add(stats); }

  PacedPass pass() const { return {name_, sequences_, tokens_, paced_clock_.use()}; }

 private:
  PacedClock paced_clock_;
  std::string name_;
  std::int64_t sequences_, tokens_;  // sequences of a pass, tokens of a sequence
};

class PacedDriver : public SessionDriver {
 public:
  // `shape` is that of the job's own model, even if a smaller model is executed to scale.
  PacedDriver(const Session& session, const GenerationShape& shape, Generation& generation)
      : SessionDriver(session, nullptr),
        generation_(generation),
        passes_{PacedProgram(session, "prefill", shape.prompts, shape.chunk),
                PacedProgram(session, "decode", shape.slots, 1)} {}

  PacedGeneration result() const {
    return {{passes_[0].pass(), passes_[1].pass()}, session().plan.peak(), executed_peak_};
  }

 protected:
  std::optional<tasks::Invocation> next() override {
    std::optional<tasks::Invocation> next = generation_.next();
    if (next) pass_of(*next).prepare(*next);
    return next;
  }

  void done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) override {
    const std::vector<InvocationStats> stats = stats_of(results);
    for (const InvocationStats& s : stats)
      executed_peak_ = std::max(executed_peak_, s.high_water[index_of(Tier::kHbm)]);
    pass_of(invocation).add(stats);
    generation_.done(results);
    std::fprintf(stderr, "pass %d done\n", ++done_);
  }

 private:
  PacedProgram& pass_of(const tasks::Invocation& invocation) {
    return passes_[generation_.is_prefill(invocation) ? 0 : 1];
  }

  Generation& generation_;
  std::array<PacedProgram, 2> passes_;
  Bytes executed_peak_{};
  int done_ = 0;  // number of passes done
};

Session session_of(const LoadedJob& loaded) {
  if (loaded.job.run.clock != kPaced)
    throw Error(Code::kBadValue, fmt::format("the job's clock is \"{}\"", loaded.job.run.clock))
        .at(loaded.source.place("run.clock"))
        .legal("paced")
        .fix("add run { clock: \"paced\" }, or generate from a checkpoint without --paced");
  Session session;
  session.job = loaded.job;
  session.plan = compile_generation(session.job).plan;
  require_generation_fit(loaded, session.plan);
  if (session.job.run.shrink != ShrinkSpec{}) {
    Scaled scaled = compile_generation_to_scale(session.job, session.plan.peak());
    session.job = std::move(scaled.job);
    session.plan = std::move(scaled.plan);
    session.original = std::move(scaled.original);
  }
  session.run_directory = require_room(session, ranks_of_this_host(session.job.supernode.devices));
  return session;
}

// Adds a few sequences of different lengths to each group, so that both kinds of passes are measured. All
// passes of a kind take the same time, whatever the lengths.
void add_sequences(const GenerationShape& shape, const ModelSpec& model, Generation& generation) {
  constexpr std::int64_t kLeastContext = 4;  // room for a prompt and the tokens of two steps
  if (shape.context < kLeastContext)
    throw Error(
        Code::kBadValue,
        fmt::format("sequences of {} positions leave no room for a prompt and two steps", shape.context))
        .at("inference.context")
        .legal(fmt::format("at least {}, after run.shrink.sequence has divided it", kLeastContext))
        .fix("take a longer context, or divide by less");
  const std::int64_t grow = std::min(kPasses + 1, shape.context - 1);
  const std::int64_t of_a_group = std::min(shape.slots / shape.groups, kPasses);
  const std::int64_t chunks = kPasses / of_a_group;
  const std::int64_t longest = std::min(shape.context - grow, chunks * shape.chunk);
  const std::int64_t in_one = (longest + shape.chunk - 1) / shape.chunk;
  const std::int64_t count = shape.groups * ((kPasses + in_one - 1) / in_one);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t shorter = i % std::min(shape.chunk, longest);
    std::vector<std::int32_t> prompt;
    for (std::int64_t at = 0; at < longest - shorter; ++at)
      prompt.push_back(static_cast<std::int32_t>((i + at) % model.vocab));
    generation.add({static_cast<std::int32_t>(i), std::move(prompt), grow});
  }
}

void print(const PacedGeneration& generation) {
  for (const PacedPass& p : generation.passes) {
    const std::string what = fmt::format("a pass of \"{}\" ({} x {} tokens)", p.name, p.sequences, p.tokens);
    std::printf("%s\n", describe_paced(p.use, what, "passes").c_str());
  }
  std::printf("HBM of a device at most %s, planned %s\n", to_string(generation.executed_peak).c_str(),
              to_string(generation.planned_peak).c_str());
}

}  // namespace

int pace_generation(const GenerateArguments& arguments) {
  const LoadedJob loaded = load_job(arguments.source);
  std::optional<Session> session;
  std::optional<Generation> generation;
  try {
    session = session_of(loaded);
    generation.emplace(session->job, session->plan);
    add_sequences(generation_shape(session->job), session->job.model, *generation);
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  PacedDriver driver(*session, generation_shape(loaded.job), *generation);
  driver.when_failed([](const Error& cause) { report_failure(cause, [] {}); });
  const control::Outcome outcome = drive(session->job, arguments.source, driver);
  if (!outcome.ok()) return outcome.exit_status();
  const PacedGeneration result = driver.result();
  if (arguments.json)
    std::printf("%s", to_json(result).c_str());
  else
    print(result);
  return 0;
}

}  // namespace hyperrun
