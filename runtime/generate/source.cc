#include "runtime/generate/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ir/families.h"
#include "runtime/ir/programs.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "runtime/report/run_directory.h"
#include "runtime/run/resume.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

// Sets the rate of a DeepSeek-V3 whose experts are balanced by a bias of their scores. A config.json does not
// say whether there is one, and a generation does not depend on the rate.
void find_balance(const fs::path& directory, ModelSpec& model) {
  const ModelFamily& family = family_of(model);
  if (model.experts.count == 0 || family.experts != Experts::kDeepseek || !family.normalizes) return;
  const SafetensorsReader weights(directory);
  const bool balanced = std::ranges::any_of(
      weights.tensors(), [](const auto& entry) { return entry.first.ends_with("e_score_correction_bias"); });
  if (balanced) model.experts.bias_rate = 1e-3;
}

// A job for a checkpoint without one: its model, tensor parallel on `devices` devices with enough HBM.
LoadedJob job_of_checkpoint(const fs::path& directory, int devices) {
  const HfConfig config = read_config(directory);
  LoadedJob loaded;
  Job& job = loaded.job;
  job.name = "generate";
  job.model = config.model;
  find_balance(directory, job.model);
  job.supernode.devices = std::max(devices, 1);
  job.supernode.hbm = kGiB * (1 << 20);  // replaced by the peak once the plan is compiled
  job.training.precision = config.dtype == DType::kBF16 ? kBfloat16 : kFloat32;
  job.parallel.mesh = {{"tp", job.supernode.devices}};
  if (job.supernode.devices > 1) job.parallel.presets = {"tp"};
  job.inference.context = std::min(job.model.sequence, 2048);
  job.data.corpus =
      directory / "config.json";  // required fields of a job, here and below, that nothing reads
  job.training.steps = 1, job.training.batch = job.supernode.devices, job.training.lr = 1;
  return loaded;
}

void refuse_option(const char* option, const char* legal) {
  throw Error(Code::kUsage, fmt::format("{} does not go with this source", option))
      .at("hyperrun generate")
      .legal(legal)
      .fix("leave it out");
}

}  // namespace

GenerationSource find_source(const GenerateArguments& a) {
  const fs::path source = a.source;
  if (!fs::exists(source))
    throw Error(Code::kMissingFile, "there is no " + a.source)
        .at("hyperrun generate")
        .legal("a run directory, a checkpoint with its config.json, or a job");
  const bool is_run = fs::exists(source / kJobFile), is_model = fs::exists(source / "config.json");
  if (fs::is_directory(source) && !is_run && !is_model)
    throw Error(Code::kMissingFile, fmt::format("{} has neither {} nor config.json", a.source, kJobFile))
        .at("hyperrun generate")
        .legal("a run directory, a checkpoint with its config.json, or a job");
  if (is_model && !is_run) {
    if (!a.checkpoint.empty()) refuse_option("--checkpoint", "a run directory, or a job");
    LoadedJob loaded = job_of_checkpoint(source, a.devices);
    loaded.job.run.resume = source;
    return {std::move(loaded), true};
  }
  if (a.devices > 0) refuse_option("--devices", "a checkpoint: a job says how many devices it has");
  LoadedJob loaded = load_job(is_run ? source / kJobFile : source, JobUse::kOfPrograms);
  if (const ProgramSpec* learner = find_program(loaded.job, kTrains))
    loaded.job = job_of(loaded.job, *learner);
  loaded.job.training.policy = {};
  if (is_run) loaded.job.run.resume = source;
  if (!a.checkpoint.empty()) loaded.job.run.resume = a.checkpoint;
  if (loaded.job.run.resume.empty())
    throw Error(Code::kMissingFile, "the job has no weights to generate with")
        .at(a.source)
        .legal("--checkpoint DIRECTORY, or a run directory in place of the job")
        .fix("train the job first, and give its run directory");
  loaded.job.run.resume = find_checkpoint(loaded.job.run.resume);
  return {std::move(loaded), false};
}

}  // namespace hyperrun
