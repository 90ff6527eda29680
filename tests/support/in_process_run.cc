#include "tests/support/in_process_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "collectives/group.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/learning_rate.h"
#include "runtime/device/device_threads.h"
#include "runtime/device/state_files.h"
#include "runtime/device/tensor_parts.h"
#include "runtime/inference/batcher.h"
#include "runtime/inference/samples_io.h"
#include "runtime/model/text/sampler.h"
#include "runtime/model/text/synthetic.h"
#include "runtime/spec/plan_io.h"

namespace hyperrun::testing {
namespace {

class Run {
 public:
  Run(const Job& job, const RunOptions& options)
      : job_(job),
        options_(options),
        plan_(plan_from_bytes(to_bytes((options.only_generates ? compile_generation(job)
                                        : options.only_scores  ? compile_scoring(job)
                                                               : compile(job))
                                           .plan),
                              "test")),
        tokens_(synthetic_tokens(job.model.vocab, 20000)),
        sampler_(tokens_, job.model.sequence, job.training.batch, job.run.seed),
        threads_(Topology::uniform(options.hosts, devices() / options.hosts), job.supernode.hbm,
                 plan_.peaks(), std::filesystem::temp_directory_path().string(), pool()) {
    check_fits(plan_, job.supernode);
    feed_.batch = options.batch;
    if (!feed_.batch)
      feed_.batch = [this](auto step, auto first, auto count, auto from, auto length, auto* ids,
                           auto* targets) {
        sampler_.fill(step, first, count,
                      {static_cast<std::int32_t>(from), static_cast<std::int32_t>(length)}, ids, targets);
      };
    result_.stats.resize(static_cast<std::size_t>(devices()));
    passes_of_.resize(static_cast<std::size_t>(devices()));
  }

  RunResult run() {
    threads_.run([this](int d) { device(d); });
    for (int d = 0; d < devices(); ++d) {
      result_.high_water.push_back(threads_.arena(d).high_water());
      const DeviceMemory memory = threads_.memory(d);
      result_.pool_high_water.push_back(memory.pool == nullptr ? Bytes(0) : memory.pool->high_water());
    }
    read_state();
    result_.losses = result_.reported["loss"];
    result_.grad_norms = result_.reported["grad_norm"];
    return std::move(result_);
  }

 private:
  int devices() const { return job_.supernode.devices; }

  PoolPlacement pool() const {
    if (!options_.spread_pool) return {};
    std::vector<Bytes> parts;
    for (int d = 0; d < devices(); ++d) parts.push_back(plan_.of_device(d).peak(Tier::kPool));
    return place_pool(Topology::uniform(options_.hosts, devices() / options_.hosts), job_.supernode.pool,
                      parts);
  }

  std::size_t index_of(std::string_view program) const { return plan_.program_index(program); }

  void device(int d) {
    World& world = threads_.world(d);
    std::vector<int> all(static_cast<std::size_t>(devices()));
    std::iota(all.begin(), all.end(), 0);
    Observer observer;
    if (options_.observer)
      observer = [this, d](const Program& program, std::size_t instr, const Addresses& at) {
        options_.observer(d, program, instr, at);
      };
    Executor executor(
        plan_, threads_.memory(d), world, feed_,
        {.thread_per_stream = options_.thread_per_stream, .seed = job_.run.seed, .observer = observer});
    const StateContext state{plan_, threads_.memory(d), world, world.make_group(31, all)};
    const auto beside_steps = options_.beside_steps ? options_.beside_steps(state) : nullptr;
    const std::vector<Nanos> durations =
        options_.durations ? options_.durations(plan_, d) : std::vector<Nanos>();
    const Pace pace{&durations, options_.dilation};
    if (!options_.only_generates && !options_.only_scores) executor.run(index_of("init"), {});
    if (!options_.load_from.empty()) load_state(state, options_.load_from);
    if (options_.only_generates) return generate(d, executor);
    if (options_.only_scores) return score(d, executor);
    const std::int64_t steps = options_.steps != 0 ? options_.steps : job_.training.steps;
    for (std::int64_t s = options_.first_step; s < steps; ++s) {
      Samples samples;
      if (options_.samples) samples = samples_from_bytes(to_bytes(options_.samples(s)));
      const Scalars scalars{
          .step = s, .lr = learning_rate(job_.training, s), .samples = options_.samples ? &samples : nullptr};
      if (options_.before_step) options_.before_step(d, s);
      const InvocationResult& r =
          executor.run(index_of("train"), scalars, true, options_.durations ? &pace : nullptr);
      if (options_.after_step) options_.after_step(d, s);
      if (beside_steps) beside_steps(s);
      result_.stats[static_cast<std::size_t>(d)] = r.stats;
      const std::lock_guard lock(outputs_);
      for (const auto& [name, value] : r.outputs) {
        auto& list = result_.reported[name];
        list.resize(static_cast<std::size_t>(steps - options_.first_step));
        list[static_cast<std::size_t>(s - options_.first_step)] = value;
      }
    }
    if (!options_.save_to.empty())
      save_state(state, options_.save_to, {.trainer = {steps, job_.run.seed}, .files = {}});
    generate(d, executor);
  }

  void generate(int d, Executor& executor) {
    if (job_.run.generate.tokens == 0) return;
    Batcher batcher(generation_shape(job_));
    for (std::int32_t id = 0; id < std::ssize(options_.prompts); ++id)
      batcher.add({id, options_.prompts[static_cast<std::size_t>(id)], job_.run.generate.tokens});
    while (const auto pass = batcher.next()) {
      const std::size_t program = index_of(pass->prefill ? "prefill" : "decode");
      const Parts& parts = all_parts(d, executor.run(program, {.requests = &pass->requests}));
      const auto drawn = whole_output_as<std::int32_t>(plan_, program, "token", parts);
      const auto logp = whole_output_as<float>(plan_, program, "logp", parts);
      for (const SampledToken& g : batcher.done(drawn, logp)) {
        if (d != 0) continue;
        result_.grown[g.id].push_back(g.token);
        result_.grown_logp[g.id].push_back(g.logp);
      }
    }
    if (d == 0) result_.tokens = result_.grown[0];
  }

  // Scores all samples, in as many passes as they take.
  void score(int d, Executor& executor) {
    const Samples all = options_.samples(0);
    const std::int64_t each = job_.training.batch / job_.training.micro_batches;
    for (std::int64_t first = 0; first < all.sequences(); first += each) {
      const auto rows = [&](const std::vector<std::int32_t>& of) {
        return std::vector(of.begin() + first * all.tokens, of.begin() + (first + each) * all.tokens);
      };
      const Samples part{.tokens = all.tokens, .ids = rows(all.ids), .targets = rows(all.targets)};
      const InvocationResult& r = executor.run(index_of("score"), {.samples = &part});
      result_.stats[static_cast<std::size_t>(d)] = r.stats;
      const Parts& parts = all_parts(d, r);
      if (d != 0) continue;
      const auto logp = whole_output_as<float>(plan_, index_of("score"), "logp", parts);
      result_.logp.insert(result_.logp.end(), logp.begin(), logp.end());
    }
  }

  // The parts of arrays that each device reports for a pass, once all devices have finished it.
  using Parts = std::vector<std::vector<OutputPart>>;
  const Parts& all_parts(int d, const InvocationResult& r) {
    std::unique_lock lock(outputs_);
    const std::size_t pass = passes_of_[static_cast<std::size_t>(d)]++;
    if (told_.size() == pass) told_.push_back({Parts(static_cast<std::size_t>(devices())), 0});
    Pass& of = told_[pass];
    of.parts[static_cast<std::size_t>(d)] = output_parts_from_bytes(to_bytes(r.arrays));
    ++of.devices;
    all_have_told_.notify_all();
    all_have_told_.wait(lock, [&] { return of.devices == devices(); });
    return of.parts;
  }

  void read_state() {
    for (std::size_t r = 0; r < plan_.roles.size(); ++r)
      for (const StateTensor& t : plan_.roles[r].state) {
        auto& known = t.cls == TensorClass::kWeight ? result_.weights : result_.moments;
        auto& whole = known[t.name];  // the value in the first role that has it; others must have the same
        if (whole.empty()) whole = assemble(t, r);
        for (int d = 0; d < devices(); ++d)
          if (plan_.role_of(d) == r && !holds(d, t, whole))
            result_.strays.push_back(fmt::format("{} of device {}", t.name, d));
      }
  }

  std::vector<float> assemble(const StateTensor& t, std::size_t role) {
    std::int64_t n = 1;
    for (std::int64_t size : t.shape) n *= size;
    std::vector<float> whole(static_cast<std::size_t>(n));
    for (int d : owners(t, plan_, role))
      copy_part(t, plan_.mesh, d, 0, t.bytes.value, reinterpret_cast<std::byte*>(whole.data()),
                part_of(d, t).data(), PartCopy::kIntoWhole);
    return whole;
  }

  std::vector<std::byte> part_of(int d, const StateTensor& t) {
    std::vector<std::byte> part(static_cast<std::size_t>(t.bytes.value));
    if (t.tier == Tier::kHbm)
      std::ranges::copy(threads_.arena(d).view(t.offset, t.bytes), part.begin());
    else
      threads_.memory(d).beyond(t.tier).read(t.offset, part);
    return part;
  }

  // True if the device's part equals that of the whole tensor, bit for bit.
  bool holds(int d, const StateTensor& t, std::vector<float>& whole) {
    std::vector<std::byte> expected(static_cast<std::size_t>(t.bytes.value));
    copy_part(t, plan_.mesh, d, 0, t.bytes.value, reinterpret_cast<std::byte*>(whole.data()), expected.data(),
              PartCopy::kOutOfWhole);
    return expected == part_of(d, t);
  }

  const Job& job_;
  const RunOptions& options_;
  Plan plan_;
  std::vector<std::int32_t> tokens_;
  Sampler sampler_;
  Feed feed_;
  DeviceThreads threads_;
  std::mutex outputs_;
  struct Pass {
    Parts parts;
    int devices = 0;  // devices that have reported their parts
  };
  std::condition_variable all_have_told_;
  std::deque<Pass> told_;               // reported parts, by pass
  std::vector<std::size_t> passes_of_;  // by device: number of passes finished
  RunResult result_;
};

}  // namespace

RunResult run_in_process(const Job& job, const RunOptions& options) { return Run(job, options).run(); }

}  // namespace hyperrun::testing
