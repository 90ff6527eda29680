#include "runtime/run/resume_changes.h"

#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/base/warning.h"
#include "runtime/compile/learning_rate.h"
#include "runtime/report/run_directory.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

constexpr const char* kOfTheCheckpoint = "the run of the checkpoint";

std::optional<Job> former_job(const std::filesystem::path& checkpoint) try {
  const std::filesystem::path checkpoints = checkpoint.parent_path();
  const std::filesystem::path file = checkpoints.parent_path() / kJobFile;
  if (checkpoints.filename() != "checkpoints" || !std::filesystem::exists(file)) return std::nullopt;
  return read_job(file);
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

// The samples of a step follow from its number, the batch and the length of a sequence.
std::string describe_samples(const Job& now, const Job& before, std::int64_t step) {
  if (now.model.sequence != before.model.sequence)
    return to_string(Warning{
        "model.sequence",
        fmt::format(
            "sequences have {} tokens, in {} {}: the corpus is cut otherwise, so samples may come again "
            "or be left out",
            now.model.sequence, kOfTheCheckpoint, before.model.sequence),
        fmt::format("for the next samples that are not seen yet keep sequence: {}", before.model.sequence)});
  const std::int64_t skipped = step * (now.training.batch - before.training.batch);
  if (skipped == 0) return "";
  return to_string(Warning{
      "training.batch",
      fmt::format("the batch is {}, in {} {}: {} samples {}", now.training.batch, kOfTheCheckpoint,
                  before.training.batch, std::abs(skipped),
                  skipped > 0 ? "are left out" : "are trained on again"),
      fmt::format("for the next samples that are not seen yet keep batch: {}", before.training.batch)});
}

}  // namespace

std::string describe_resume_changes(const Job& job, const Job& former, std::int64_t first_step) {
  return describe_schedule(job.training, former.training, first_step) +
         describe_samples(job, former, first_step);
}

std::string describe_resume_changes(const Job& job, const std::filesystem::path& checkpoint,
                                    std::int64_t first_step) {
  const std::optional<Job> former = former_job(checkpoint);
  const bool comparable = former && former->programs.empty() && former->run.shrink == ShrinkSpec{};
  return comparable && first_step > 0 ? describe_resume_changes(job, *former, first_step) : "";
}

}  // namespace hyperrun
