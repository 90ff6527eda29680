#include "runtime/verify/execution.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/compile/learning_rate.h"

namespace hyperrun {

Execution::Execution(const Job& job, const Plan& plan, const Merged& merged, const Feed& feed, Taker take)
    : job_(job),
      plan_(plan),
      feed_(feed),
      take_(std::move(take)),
      threads_(Topology::one_host(static_cast<int>(plan_.mesh.devices())), plan_.peak(), plan_.peaks(),
               std::filesystem::temp_directory_path().string(), {}, /*share=*/true),
      executors_(static_cast<std::size_t>(threads_.size())) {
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (const Program& p : plan.roles[r].programs)
      writes_[&p] = writes(p, merged, r, job.training.micro_batches);
}

void Execution::run(std::string_view program, std::int64_t step) {
  const std::size_t index = plan_.program_index(program);
  threads_.run([&](int device) {
    const InvocationResult& result =
        executor(device).run(index, {.step = step, .lr = learning_rate(job_.training, step)});
    if (device == 0) outputs_ = result.outputs;
  });
}

double Execution::output(std::string_view name) const {
  const auto found = std::ranges::find(outputs_, name, &std::pair<std::string, double>::first);
  HR_CHECK(found != outputs_.end(), std::string(name));
  return found->second;
}

Executor& Execution::executor(int device) {
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

Feed feed_of(const Sampler& sampler) {
  Feed feed;
  feed.batch = [&sampler](auto step, auto first, auto count, auto from, auto length, auto* ids,
                          auto* targets) {
    sampler.fill(step, first, count, {static_cast<std::int32_t>(from), static_cast<std::int32_t>(length)},
                 ids, targets);
  };
  return feed;
}

}  // namespace hyperrun
