// hyperrun generate JOB --paced: the passes of a generation on the emulated machine, as long as on the
// simulated one. Weights are zero, and prompts any tokens: what is measured is when instructions run, and
// what they occupy.
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
#include "runtime/report/generation.h"
#include "runtime/report/paced.h"
#include "runtime/run/drive.h"
#include "runtime/run/generate.h"
#include "runtime/run/generation.h"
#include "runtime/run/mpi_start.h"
#include "runtime/run/pacing.h"
#include "runtime/run/protocol.h"
#include "runtime/run/results.h"
#include "runtime/run/session_driver.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

// Of each kind: one that shows how much work there is, and those that are measured.
constexpr std::int64_t kPasses = 4;

// The passes of one Program.
class Paced {
 public:
  Paced(const Session& session, const std::string& name, std::int64_t sequences, std::int64_t tokens)
      : pacing_(session, name), name_(name), sequences_(sequences), tokens_(tokens) {}

  void prepare(tasks::Invocation& invocation) const {
    invocation.scalars[kTraced] = std::int64_t{1};
    if (pacing_.dilation() > 0) invocation.scalars[kDilation] = pacing_.dilation();
  }

  void add(std::span<const InvocationStats> stats) { pacing_.add(stats); }

  PacedPass pass() const { return {name_, sequences_, tokens_, pacing_.use()}; }

 private:
  Pacing pacing_;
  std::string name_;
  std::int64_t sequences_, tokens_;  // of each
};

class PacedDriver : public SessionDriver {
 public:
  // `shape`: of the job's own model, also where a smaller one runs.
  PacedDriver(const Session& session, const GenerationShape& shape, Generation& generation)
      : SessionDriver(session, nullptr),
        generation_(generation),
        passes_{Paced(session, "prefill", shape.prompts, shape.chunk),
                Paced(session, "decode", shape.slots, 1)} {}

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
  Paced& pass_of(const tasks::Invocation& invocation) {
    return passes_[generation_.is_prefill(invocation) ? 0 : 1];
  }

  Generation& generation_;
  std::array<Paced, 2> passes_;
  Bytes executed_peak_{};
  int done_ = 0;  // passes
};

Session session_of(const LoadedJob& loaded) {
  if (loaded.job.run.clock != kPaced)
    throw Error(Code::kBadValue, "the job's clock is \"" + loaded.job.run.clock + "\"")
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
  session.run_directory = require_room(session.job, session.plan);
  return session;
}

// Of each group a few sequences of different lengths, so that both kinds of passes are measured: all passes
// of a kind take the same time.
void add_sequences(const GenerationShape& shape, const ModelSpec& model, Generation& generation) {
  constexpr std::int64_t kLeastContext = 4;  // a prompt, and the tokens of two steps
  if (shape.context < kLeastContext)
    throw Error(Code::kBadValue, "sequences of " + std::to_string(shape.context) +
                                     " positions leave no room for a prompt and two steps")
        .at("inference.context")
        .legal("at least " + std::to_string(kLeastContext) + ", after run.shrink.sequence has divided it")
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
    const std::string what = "a pass of \"" + p.name + "\" (" + std::to_string(p.sequences) + " x " +
                             std::to_string(p.tokens) + " tokens)";
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
