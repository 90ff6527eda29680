#include "runtime/verify/verify.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "runtime/base/error.h"
#include "runtime/compile/schedule.h"
#include "runtime/device/device_threads.h"
#include "runtime/device/executor.h"
#include "runtime/model/text/sampler.h"
#include "runtime/model/text/synthetic.h"
#include "runtime/verify/comparison.h"

namespace hyperrun {
namespace {

// Gets an output of a node, of the program that runs.
using Taker =
    std::function<void(int device, const Write& write, std::size_t output, std::span<std::byte> bytes)>;

// A plan on threads, program after program; after each instruction its outputs are handed to `take`.
class Execution {
 public:
  Execution(const Job& job, const Plan& plan, const Merged& merged, const Feed& feed, Taker take)
      : job_(job),
        plan_(plan),
        feed_(feed),
        take_(std::move(take)),
        threads_(Topology::one_host(static_cast<int>(plan_.mesh.devices())), plan_.peak(), plan_.peaks(),
                 std::filesystem::temp_directory_path().string()),
        executors_(static_cast<std::size_t>(threads_.size())) {
    for (std::size_t r = 0; r < plan.roles.size(); ++r)
      for (const Program& p : plan.roles[r].programs)
        writes_[&p] = writes(p, merged, r, job.training.micro_batches);
  }

  void run(std::string_view program, std::int64_t step) {
    const std::size_t index = plan_.program_index(program);
    threads_.run([&](int device) {
      executor(device).run(index, {.step = step, .lr = learning_rate(job_.training, step)});
    });
  }

 private:
  Executor& executor(int device) {
    std::unique_ptr<Executor>& e = executors_[static_cast<std::size_t>(device)];
    if (e == nullptr) {
      ExecutorOptions options{.seed = job_.run.seed};
      options.observer = [this, device](const Program& program, std::size_t instr, const Addresses& at) {
        const Write& write = writes_.at(&program)[instr];
        const std::vector<Operand>& out = program.instrs[instr].out;
        for (std::size_t o = 0; write.node >= 0 && o < out.size(); ++o)
          take_(device, write, o, {at.out[o], static_cast<std::size_t>(out[o].bytes.value)});
      };
      e = std::make_unique<Executor>(plan_, threads_.memory(device), threads_.world(device), feed_, options);
    }
    return *e;
  }

  const Job& job_;
  const Plan& plan_;
  const Feed& feed_;
  Taker take_;
  std::map<const Program*, std::vector<Write>> writes_;  // by instruction
  DeviceThreads threads_;
  std::vector<std::unique_ptr<Executor>> executors_;
};

// Nothing is split, and nothing computed again: the value that is kept is what it has to be.
Job for_one_device(Job job) {
  job.supernode.devices = 1;
  job.parallel = {};
  job.training.recompute.clear();
  return job;
}

// Long enough that no sequence comes twice, within reason.
std::vector<std::int32_t> made_up_text(const Job& job, std::int64_t steps) {
  constexpr std::int64_t kMost = std::int64_t{1} << 22;
  const std::int64_t tokens = (steps + 1) * job.training.batch * job.model.sequence + 1;
  return synthetic_tokens(
      job.model.vocab,
      static_cast<std::size_t>(std::max(std::min(tokens, kMost), job.model.sequence + std::int64_t{1})));
}

// What rounding alone may change by half of itself tells nothing of a layout.
constexpr double kMeaningless = 0.5;

void count(Verification& to, const Compared& c) {
  KindSummary& kind = to.kinds[static_cast<std::size_t>(c.kind)];
  if (kind.compared++ == 0 || c.share() > kind.worst.share()) kind.worst = c;
  if (!c.diverges()) return;
  ++to.diverging;
  if (!to.first) to.first = c;
}

}  // namespace

std::int64_t Verification::compared() const {
  std::int64_t n = 0;
  for (const KindSummary& kind : kinds) n += kind.compared;
  return n;
}

const Compared& Verification::worst() const {
  const KindSummary* worst = kinds.data();
  for (const KindSummary& kind : kinds)
    if (kind.worst.share() > worst->worst.share()) worst = &kind;
  return worst->worst;
}

Verification verify_layout(const Job& job, const Compiled& compiled, std::int64_t steps) {
  const Job one_job = for_one_device(job);
  const Compiled one_compiled = compile(one_job);
  const std::vector<std::int32_t> text = made_up_text(job, steps);
  const Sampler sampler(text, job.model.sequence, job.training.batch, job.run.seed);
  Feed feed;
  feed.batch = [&](auto step, auto first, auto count, auto from, auto length, auto* ids, auto* targets) {
    sampler.fill(step, first, count, {static_cast<std::int32_t>(from), static_cast<std::int32_t>(length)},
                 ids, targets);
  };

  const Merged sharded = merge(compiled, job.parallel.pipeline);
  const Merged single = merge(one_compiled, {});
  const Counterparts known = counterparts(sharded.graph, single.graph);
  const bool rounds = job.training.precision == kBfloat16 || job.parallel.gradients == kBfloat16;
  Reference reference(single.graph, rounds);
  Comparison comparison(sharded, compiled.plan.mesh, reference, known, job.training.micro_batches);
  Execution one(one_job, one_compiled.plan, single, feed,
                [&](int, const auto&... of) { reference.keep(of...); });
  Execution perturbed(one_job, one_compiled.plan, single, feed,
                      [&](int, const auto&... of) { reference.keep_perturbed(of...); });
  Execution many(job, compiled.plan, sharded, feed, [&](const auto&... of) { comparison.add(of...); });

  Verification result;
  result.own_parts = known.own_parts;
  result.others = known.others;
  for (std::int64_t step = -1; step < steps; ++step) {
    const char* program = step < 0 ? "init" : "train";
    one.run(program, step);
    perturbed.run(program, step);
    comparison.begin_step(step);
    many.run(program, step);
    reference.end_step();
    for (const Compared& c : comparison.take()) {
      if (c.allowed > kMeaningless && !c.disagreeing)
        ++result.noise;
      else
        count(result, c);
    }
  }
  return result;
}

}  // namespace hyperrun
