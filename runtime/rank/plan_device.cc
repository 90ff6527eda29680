#include "runtime/rank/plan_device.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>

#include "runtime/cost/groups.h"
#include "runtime/device/state_hashes.h"
#include "runtime/inference/requests_io.h"
#include "runtime/inference/samples_io.h"
#include "runtime/inference/vectors_io.h"
#include "runtime/rank/fault.h"
#include "runtime/rank/protocol.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/stats_io.h"

namespace hyperrun {
namespace {

std::int64_t clock_shift() {
  const auto ns = [](auto t) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
  };
  return ns(std::chrono::system_clock::now()) - ns(std::chrono::steady_clock::now());
}

Scalars scalars_of(const tasks::Invocation& invocation) {
  Scalars scalars;
  scalars.step = invocation.step;
  const auto read = [&]<class T>(const char* name, T& into) {
    if (const auto said = invocation.scalars.find(name); said != invocation.scalars.end())
      into = std::get<T>(said->second);
  };
  read(kLearningRate, scalars.lr);
  read(kSlot, scalars.slot);
  read(kOtherSquares, scalars.other_squares);
  return scalars;
}

PlanWorld world_of(const Session& session, World& world, int first_key) {
  std::vector<int> ranks = session.ranks;
  if (ranks.empty()) {
    ranks.resize(static_cast<std::size_t>(world.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  return {world, std::move(ranks), first_key};
}

SaverOptions saver_options(const Session& session) {
  const RunSpec& run = session.job.run;
  SaverOptions options;
  options.copies = copies_folder(session.run_directory, session.name);
  options.keeps_copies = run.copy_every > 0 && session.name.empty();
  options.kept = {run.keep_last, run.keep_every};
  options.warn = [](const std::string& problem) { std::fprintf(stderr, "warning: %s\n", problem.c_str()); };
  return options;
}

}  // namespace

PlanDevice::PlanDevice(const Session& session, std::shared_ptr<const std::vector<std::int32_t>> tokens,
                       int first_key, const SharedParts& shared)
    : session_(session),
      shared_(shared),
      world_(world_of(session, shared.world, first_key)),
      everyone_(world_.make_group_of_all(keys_of(session.plan) - 1)),
      tokens_(std::move(tokens)),
      saver_(state(), saver_options(session)),
      shift_(clock_shift()) {
  const Job& job = session_.job;
  if (!tokens_->empty()) {
    sampler_.emplace(*tokens_, job.model.sequence, job.training.batch, job.run.seed);
    sampler_->begin(session_.first_step, session_.first_sample);
  }
  feed_.batch = [this](auto step, auto first, auto count, auto from, auto length, auto* ids, auto* targets) {
    sampler_->fill(step, first, count, {static_cast<std::int32_t>(from), static_cast<std::int32_t>(length)},
                   ids, targets);
  };
  executor_ = std::make_unique<Executor>(session_.plan, shared_.memory, world_, feed_,
                                         ExecutorOptions{.thread_per_stream = shared_.thread_per_stream,
                                                         .seed = job.run.seed,
                                                         .progress = &shared_.status.last_instruction});
  if (job.run.clock == kPaced) look_up_durations();
}

void PlanDevice::look_up_durations() {
  const SupernodeSpec& spec = session_.job.supernode;
  const Topology topology = hosts_of(machine_of(spec), world_.devices());
  for (const Program& program : session_.plan.of_device(world_.device()).programs)
    durations_.push_back(durations(session_.pace(), program.name, spec, topology, world_.device()));
}

tasks::InvocationDone PlanDevice::run(std::int32_t program, const tasks::Invocation& invocation) {
  tasks::InvocationDone done;
  if (program == kSaveProgram) flip(invocation);
  if (program == kSaveProgram)
    save(invocation);
  else if (program == kCopyProgram)
    saver_.copy(unsplit(invocation.step));
  else if (program == kLoadProgram)
    load_state(state(), session_.job.run.resume);
  else if (program == kLoadWeightsProgram)
    load_weights(state(), session_.job.run.resume);
  else if (program == kCompareProgram)
    done.data = hashes_to_bytes(state_hashes(session_.plan, world_.device(), shared_.memory));
  else if (program == kBeginCheckpointProgram)
    begin_checkpoint(invocation.step);
  else if (program == kSavePartProgram)
    save_part(invocation);
  else if (program == kAwaitPartProgram)
    done.data = saver_.written();
  else if (program == kEndCheckpointProgram)
    end_checkpoint(invocation);
  else
    compute(static_cast<std::size_t>(program), invocation, done);
  if (program != kSaveProgram) flip(invocation);
  return done;
}

void PlanDevice::compute(std::size_t program, const tasks::Invocation& invocation,
                         tasks::InvocationDone& done) {
  Scalars scalars = scalars_of(invocation);
  Requests requests;
  Samples samples;
  InputVectors vectors;
  if (are_samples(invocation.data))
    scalars.samples = &(samples = samples_from_bytes(invocation.data));
  else if (are_vectors(invocation.data))
    scalars.vectors = &(vectors = vectors_from_bytes(invocation.data));
  else if (!invocation.data.empty())
    scalars.requests = &(requests = requests_from_bytes(invocation.data));
  const bool traced = invocation.scalars.contains(kTraced);
  const DeviceProgress::ProgramGuard guard(
      shared_.progress, session_.plan.of_device(world_.device()).programs[program], invocation.step);
  Pace pace;
  const auto dilation = invocation.scalars.find(kDilation);
  const bool paced = dilation != invocation.scalars.end();
  if (paced) pace = {&durations_[program], std::get<double>(dilation->second)};
  const InvocationResult& result = executor_->run(program, scalars, traced, paced ? &pace : nullptr);
  done.outputs = {result.outputs.begin(), result.outputs.end()};
  done.data = to_bytes(result.arrays);
  done.report = to_bytes(result.stats, shift_, traced);
}

// Commits the fault "flip". In a save it comes before what is saved, else after what the Program computes.
void PlanDevice::flip(const tasks::Invocation& invocation) const {
  const auto fault = fault_of(invocation, world_.world().rank());
  if (!fault || fault->kind != kFlipFault) return;
  const std::string place =
      flip_bit(session_.plan, world_.device(), shared_.memory, session_.job.run.chaos.seed);
  std::fprintf(stderr, "%s\n", fmt::format("a fault is injected: {} flips", place).c_str());
}

Unsplit PlanDevice::unsplit(std::int64_t step) const {
  const TrainingSpec& t = session_.job.training;
  const std::int64_t samples = session_.first_sample + (step - session_.first_step) * t.batch;
  return {.trainer = {.next_step = step,
                      .seed = session_.job.run.seed,
                      .next_sample = samples,
                      .with = TrainedWith{t.steps, t.batch, t.warmup_steps, t.lr, t.min_lr,
                                          session_.job.model.sequence}},
          .files = session_.checkpoint_files};
}

std::filesystem::path PlanDevice::checkpoint(std::int64_t step) const {
  return std::filesystem::path(session_.run_directory) / "checkpoints" / checkpoint_name(step);
}

void PlanDevice::save(const tasks::Invocation& invocation) {
  save(invocation, {checkpoint(invocation.step)});
}

void PlanDevice::save(const tasks::Invocation& invocation, const StateSaver::Target& target) {
  const bool beside = invocation.scalars.contains(kBeside);
  saver_.save(target, unsplit(invocation.step),
              beside ? StateSaver::Return::kOnceCopied : StateSaver::Return::kOnceWritten,
              brings(invocation, kFullDiskFault) ? "no space is left on the disk (an injected fault)" : "");
}

void PlanDevice::begin_checkpoint(std::int64_t step) {
  if (world_.device() == 0) begun_ = std::make_unique<AtomicDirectory>(checkpoint(step));
}

void PlanDevice::save_part(const tasks::Invocation& invocation) {
  const std::filesystem::path final_path = checkpoint(invocation.step);
  const std::filesystem::path whole = AtomicDirectory::path_of(final_path);
  if (world_.device() == 0 && !std::filesystem::exists(whole))
    throw Error(Code::kUnwritable,
                "the host of another program's first device has begun it, and it is not here")
        .at(final_path.string())
        .legal("a run directory that the hosts of all programs' first devices share")
        .fix("put run.directory on a file system that they share");
  save(invocation, {whole / invocation.data, true});
}

void PlanDevice::end_checkpoint(const tasks::Invocation& invocation) {
  if (!begun_) return;
  const std::unique_ptr<AtomicDirectory> ended = std::move(begun_);
  if (invocation.data.empty()) return;
  write_file(ended->path() / kProgramsStateFile, invocation.data);
  ended->commit();
  remove_superfluous(checkpoint(invocation.step).parent_path(),
                     {session_.job.run.keep_last, session_.job.run.keep_every});
}

}  // namespace hyperrun
