#include "runtime/run/resume_changes.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/base/warning.h"
#include "runtime/compile/learning_rate.h"
#include "runtime/device/trainer_state.h"
#include "runtime/report/run_directory.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

constexpr const char* kOfTheCheckpoint = "the run of the checkpoint";

std::optional<Job> job_of_run(const std::filesystem::path& checkpoint) try {
  const std::filesystem::path checkpoints = checkpoint.parent_path();
  const std::filesystem::path file = checkpoints.parent_path() / kJobFile;
  if (checkpoints.filename() != "checkpoints" || !std::filesystem::exists(file)) return std::nullopt;
  Job job = read_job(file);
  const bool comparable = job.programs.empty() && job.run.shrink == ShrinkSpec{};
  return comparable ? std::optional(std::move(job)) : std::nullopt;
} catch (const Error&) {
  return std::nullopt;  // of another version, or its profile is gone: there is nothing to compare with
}

template <class T>
void add_change(std::vector<std::string>& list, const char* field, const T& now, const T& before) {
  if (now != before) list.push_back(fmt::format("{} is {} (there {})", field, now, before));
}

std::string describe_schedule(const TrainingSpec& now, const TrainingSpec& before, std::int64_t step) {
  std::vector<std::string> changes;
  add_change(changes, "steps", now.steps, before.steps);
  add_change(changes, "lr", now.lr, before.lr);
  add_change(changes, "min_lr", now.min_lr, before.min_lr);
  add_change(changes, "warmup_steps", now.warmup_steps, before.warmup_steps);
  if (changes.empty()) return "";
  return to_string(Warning{
      "training",
      fmt::format("the learning rate is not that of {}: {}; step {} takes {:.3g}, there it would be {:.3g}",
                  kOfTheCheckpoint, joined(changes), step + 1, learning_rate(now, step),
                  learning_rate(before, step)),
      "for the same learning rates keep steps, lr, min_lr and warmup_steps"});
}

std::string describe_samples(const Job& now, const Job& before, const ResumePoint& first) {
  if (now.model.sequence != before.model.sequence)
    return to_string(Warning{
        "model.sequence",
        fmt::format(
            "sequences have {} tokens, in {} {}: the corpus is cut otherwise, so samples may come again "
            "or be left out",
            now.model.sequence, kOfTheCheckpoint, before.model.sequence),
        fmt::format("for the next samples that are not seen yet keep sequence: {}", before.model.sequence)});
  if (now.training.batch == before.training.batch) return "";
  return fmt::format(
      "training.batch: the batch is {}, in {} {}: goes on with sample {}, the next not seen yet\n",
      now.training.batch, kOfTheCheckpoint, before.training.batch, first.sample + 1);
}

}  // namespace

std::optional<Job> former_job(const Job& job) {
  const std::optional<TrainedWith> with = read_trainer_state(job.run.resume).with;
  if (!with) return job_of_run(job.run.resume);
  if (job.run.shrink != ShrinkSpec{}) return std::nullopt;
  Job former = job;
  former.training.steps = with->steps;
  former.training.batch = with->batch;
  former.training.warmup_steps = with->warmup_steps;
  former.training.lr = with->lr;
  former.training.min_lr = with->min_lr;
  former.model.sequence = with->sequence;
  return former;
}

std::string describe_resume_changes(const Job& job, const Job& former, const ResumePoint& first) {
  return describe_schedule(job.training, former.training, first.step) + describe_samples(job, former, first);
}

}  // namespace hyperrun
