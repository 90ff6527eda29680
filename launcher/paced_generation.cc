// hyperrun generate JOB --paced: the passes of a generation on the emulated machine, as long as on the
// simulated one. Weights are zero, and prompts any tokens: what is measured is when instructions run, and
// what they occupy.
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands.h"
#include "launcher/drive.h"
#include "launcher/generation.h"
#include "launcher/pacing.h"
#include "launcher/protocol.h"
#include "memory/shared_window.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/shrink.h"
#include "runtime/report/generation.h"
#include "runtime/report/paced.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/stats_io.h"

namespace hyperrun {
namespace {

// Of each kind: one that shows how much work there is, and those that are measured.
constexpr std::int64_t kPasses = 4;

// The passes of one Program.
class Paced {
 public:
  Paced(const Session& session, const std::string& name, std::int64_t sequences, std::int64_t tokens)
      : pacing_(session, name), name_(name), sequences_(sequences), tokens_(tokens) {}

  void prepare(control::Invocation& invocation) const {
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

class PacedDriver : public control::Driver {
 public:
  // `shape`: of the job's own model, also where a smaller one runs.
  PacedDriver(const Session& session, const GenerationShape& shape, Generation& generation)
      : session_(session),
        generation_(generation),
        passes_{Paced(session, "prefill", shape.groups, shape.chunk),
                Paced(session, "decode", shape.slots, 1)} {}

  std::vector<Assignment> on_ready(const std::vector<control::DeviceInfo>&) override {
    return {{{0, "session", to_bytes(session_)}, {}}};
  }

  std::optional<control::Invocation> next_invocation() override {
    std::optional<control::Invocation> next = generation_.next();
    if (next) of(*next).prepare(*next), next->id = issued_++;
    return next;
  }

  void on_done(const control::Invocation& invocation,
               std::span<const control::InvocationDone> results) override {
    std::vector<InvocationStats> stats;
    for (const control::InvocationDone& r : results)
      stats.push_back(stats_from_bytes(r.report, "device " + std::to_string(stats.size())));
    for (const InvocationStats& s : stats)
      executed_peak_ = std::max(executed_peak_, s.high_water[index_of(Tier::kHbm)]);
    of(invocation).add(stats);
    generation_.done(results);
  }

  void on_failed(const Error& cause) override { std::fprintf(stderr, "%s\n", cause.what()); }

  PacedGeneration result() const {
    return {{passes_[0].pass(), passes_[1].pass()}, session_.plan.peak(), executed_peak_};
  }

 private:
  Paced& of(const control::Invocation& invocation) {
    const auto decode = static_cast<std::int32_t>(session_.plan.program_index("decode"));
    return passes_[invocation.program == decode ? 1 : 0];
  }

  const Session& session_;
  Generation& generation_;
  std::array<Paced, 2> passes_;
  Bytes executed_peak_{};
  std::int64_t issued_ = 0;
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
  check_fits(session.plan, session.job.supernode);
  if (session.job.run.shrink != ShrinkSpec{}) {
    Scaled scaled = compile_generation_to_scale(session.job, session.plan.peak());
    session.job = std::move(scaled.job);
    session.plan = std::move(scaled.plan);
    session.original = std::move(scaled.original);
  }
  require_shared_memory(Bytes(session.job.supernode.hbm.value * session.job.supernode.devices));
  session.run_directory = std::filesystem::temp_directory_path();
  return session;
}

// As many sequences of different lengths, and as many tokens of each, as it takes to measure both kinds of
// passes.
void add_sequences(const GenerationShape& shape, std::int32_t tokens, const ModelSpec& model,
                   Generation& generation) {
  const std::int64_t grow = std::min<std::int64_t>(tokens > 0 ? tokens : kPasses + 1, shape.context - 1);
  const std::int64_t longest = std::min(shape.context - grow, kPasses * shape.chunk);
  const std::int64_t chunks = (longest + shape.chunk - 1) / shape.chunk;
  const std::int64_t count = std::max(shape.slots, shape.groups * ((kPasses + chunks - 1) / chunks));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t shorter = i % std::max<std::int64_t>(1, std::min(shape.chunk, longest));
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
    std::printf("%s\n", paced_text(p.use, what, "passes").c_str());
  }
  std::printf("HBM of a device at most %s, planned %s\n", to_string(generation.executed_peak).c_str(),
              to_string(generation.planned_peak).c_str());
}

}  // namespace

int pace_generation(const GenerateArguments& arguments) {
  const LoadedJob loaded = load_job(arguments.source);
  std::optional<Session> session;
  try {
    session = session_of(loaded);
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  Generation generation(session->job, session->plan);
  add_sequences(generation_shape(session->job), arguments.tokens, session->job.model, generation);
  PacedDriver driver(*session, generation_shape(loaded.job), generation);
  const control::Outcome outcome = drive(*session, driver);
  if (!outcome.ok()) return outcome.exit_status();
  const PacedGeneration result = driver.result();
  if (arguments.json)
    std::printf("%s", to_json(result).c_str());
  else
    print(result);
  return 0;
}

}  // namespace hyperrun
