#include "runtime/run/resume.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/device/state_files.h"
#include "runtime/ir/families.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/run/programs_state.h"
#include "runtime/run/resume_changes.h"

namespace hyperrun {
namespace {

std::string text(const std::string& v) { return v; }
std::string text(bool v) { return v ? "true" : "false"; }
std::string text(std::int32_t v) { return std::to_string(v); }
// The shortest text that reads back as the same number, so that different numbers look different.
std::string text(double v) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), v).ptr};
}

class Differences {
 public:
  template <class T>
  void compare(const char* field, const T& checkpoint, const T& job) {
    if (checkpoint == job) return;
    text_ +=
        fmt::format("{}{} is {} (job: {})", text_.empty() ? "" : ", ", field, text(checkpoint), text(job));
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

// The rows of the table of learned positions; 0 if the model has none. `positions` is 0 for a table that is
// as long as a sequence.
std::int32_t rows_of_positions(const ModelSpec& m) {
  return family_of(m).learned_positions ? std::max(m.positions, m.sequence) : 0;
}

void compare_rope(Differences& d, const RopeScaling& model, const RopeScaling& job) {
  d.compare("rope_scaling.rope_type", model.type, job.type);
  d.compare("rope_scaling.factor", model.factor, job.factor);
  d.compare("rope_scaling.low_freq_factor", model.low_freq_factor, job.low_freq_factor);
  d.compare("rope_scaling.high_freq_factor", model.high_freq_factor, job.high_freq_factor);
  d.compare("rope_scaling.original_sequence", model.original_sequence, job.original_sequence);
  d.compare("rope_scaling.attention_factor", model.attention_factor, job.attention_factor);
  d.compare("rope_scaling.beta_fast", model.beta_fast, job.beta_fast);
  d.compare("rope_scaling.beta_slow", model.beta_slow, job.beta_slow);
  d.compare("rope_scaling.mscale", model.mscale, job.mscale);
  d.compare("rope_scaling.mscale_all_dim", model.mscale_all_dim, job.mscale_all_dim);
  d.compare("rope_scaling.truncate", model.truncate, job.truncate);
  d.compare("rope_scaling.short_factor", joined(model.short_factor), joined(job.short_factor));
  d.compare("rope_scaling.long_factor", joined(model.long_factor), joined(job.long_factor));
}

// Compares what only some layers have, in the first layer that differs.
void compare_layers(Differences& d, const ModelSpec& model, const ModelSpec& job) {
  for (std::int32_t l = 0; l < std::min(model.layers, job.layers); ++l) {
    if (model.window_of(l) == job.window_of(l) && model.experts.in_layer(l) == job.experts.in_layer(l))
      continue;
    d.compare(fmt::format("the window of layer {}", l).c_str(), model.window_of(l), job.window_of(l));
    d.compare(fmt::format("having experts in layer {}", l).c_str(), model.experts.in_layer(l),
              job.experts.in_layer(l));
    return;
  }
}

// Compares all fields that change the weights or the computation. The length of a sequence may differ, except
// for a model with learned positions.
void check_model(const std::filesystem::path& config, const ModelSpec& job) {
  const ModelSpec model = read_config(config).model;
  Differences d;
  d.compare("the architecture", model.name, job.name);
  d.compare("layers", model.layers, job.layers);
  d.compare("hidden", model.hidden, job.hidden);
  d.compare("heads", model.heads, job.heads);
  d.compare("kv_heads", model.kv_heads, job.kv_heads);
  d.compare("head_dim", model.head_dim, job.head_dim);
  d.compare("ffn", model.ffn, job.ffn);
  d.compare("vocab", model.vocab, job.vocab);
  d.compare("rope_theta", model.rope_theta, job.rope_theta);
  d.compare("attention_bias", model.attention_bias, job.attention_bias);
  d.compare("mlp_bias", model.mlp_bias, job.mlp_bias);
  d.compare("rotary_dim", model.rotary_dim, job.rotary_dim);
  compare_rope(d, model.rope_scaling, job.rope_scaling);
  compare_layers(d, model, job);
  d.compare("norm_eps", model.norm_eps, job.norm_eps);
  d.compare("tied_head", model.tied_head, job.tied_head);
  d.compare("positions", rows_of_positions(model), rows_of_positions(job));
  d.compare("experts.count", model.experts.count, job.experts.count);
  d.compare("experts.choices", model.experts.choices, job.experts.choices);
  d.compare("experts.ffn", model.experts.ffn, job.experts.ffn);
  d.compare("experts.shared", model.experts.shared, job.experts.shared);
  d.compare("experts.scoring", model.experts.scoring, job.experts.scoring);
  d.compare("experts.normalize", model.experts.normalize, job.experts.normalize);
  d.compare("experts.scale", model.experts.scale, job.experts.scale);
  d.compare("experts.groups", model.experts.groups, job.experts.groups);
  d.compare("experts.group_choices", model.experts.group_choices, job.experts.group_choices);
  if (job.experts.groups > 1)
    d.compare("experts.group_best", model.experts.group_best, job.experts.group_best);
  d.compare("latent.q_rank", model.latent.q_rank, job.latent.q_rank);
  d.compare("latent.kv_rank", model.latent.kv_rank, job.latent.kv_rank);
  d.compare("latent.nope_dim", model.latent.nope_dim, job.latent.nope_dim);
  d.compare("latent.rope_dim", model.latent.rope_dim, job.latent.rope_dim);
  d.compare("latent.value_dim", model.latent.value_dim, job.latent.value_dim);
  d.compare("mtp.layers", model.mtp.layers, job.mtp.layers);
  if (!d.str().empty())
    throw Error(Code::kBadCheckpoint, "it is of another model: " + d.str()).at(config.string());
}

}  // namespace

void set_resume(Job& job, const std::string& path) {
  if (!path.empty() && !std::filesystem::exists(path))
    throw Error(Code::kMissingFile, "there is no " + path)
        .at("--resume")
        .legal("a checkpoint, or a run directory that has one");
  if (!path.empty()) job.run.resume = std::filesystem::absolute(path);
}

std::filesystem::path find_checkpoint(const std::filesystem::path& path) {
  std::filesystem::path last;
  if (std::filesystem::is_directory(path / "checkpoints"))
    for (const auto& entry : std::filesystem::directory_iterator(path / "checkpoints"))
      if (saved_step(entry.path()) > saved_step(last)) last = entry.path();
  return last.empty() ? path : last;
}

std::vector<std::filesystem::path> checkpoints_after(const std::filesystem::path& run_directory,
                                                     std::int64_t step) {
  std::vector<std::filesystem::path> later;
  if (std::filesystem::is_directory(run_directory / "checkpoints"))
    for (const auto& entry : std::filesystem::directory_iterator(run_directory / "checkpoints"))
      if (saved_step(entry.path()) > step) later.push_back(entry.path());
  return later;
}

void remove_unfinished_checkpoints(const std::filesystem::path& checkpoints) {
  remove_unfinished(checkpoints, "step-");
}

void check_checkpoint(const Job& job, const Plan& plan) {
  const std::filesystem::path directory = job.run.resume, config = directory / "config.json";
  if (std::filesystem::exists(config)) check_model(config, job.model);
  check_state(plan, directory);
}

namespace {

// Files of earlier versions have no number of samples. All steps had one batch then.
std::int64_t next_sample(const Job& job, const TrainerState& trainer) {
  if (trainer.next_sample) return *trainer.next_sample;
  const std::optional<Job> former = former_job(job);
  return trainer.next_step * (former ? former->training.batch : job.training.batch);
}

}  // namespace

ResumePoint resume_point(const Job& job, const Plan& plan) {
  const std::filesystem::path directory = job.run.resume;
  const std::optional<ProgramsState> of_programs = read_programs_state(directory);
  if (of_programs && of_programs->kind == kOfEncoders)
    throw Error(Code::kBadCheckpoint, "it is of a job with encoders")
        .at(directory.string())
        .legal("a checkpoint of a training, or weights of the job's model")
        .fix("resume the job with encoders, or give another checkpoint");
  check_checkpoint(job, plan);
  if (of_programs) return {.weights_alone = true};
  const TrainerState trainer = read_trainer_state(directory);
  if (trainer.seed && *trainer.seed != job.run.seed)
    throw Error(
        Code::kBadValue,
        fmt::format("the checkpoint was trained with seed {}, the job's is {}: its batches would be others",
                    *trainer.seed, job.run.seed))
        .at("run.seed")
        .legal(fmt::format("{}", *trainer.seed))
        .fix("give the job the checkpoint's seed");
  return {trainer.next_step, next_sample(job, trainer)};
}

ResumePoint check_resume(const Job& job, const Plan& plan) {
  const ResumePoint first = resume_point(job, plan);
  const std::int64_t steps = job.training.steps;
  if (steps == 0) return first;  // a job that is not run may leave the steps open
  if (first.step > steps || (first.step == steps && job.run.generate.tokens == 0))
    throw Error(Code::kBadValue,
                fmt::format("nothing is left to do: the checkpoint has {} steps behind it, the job has {}",
                            first.step, steps))
        .at("training.steps")
        .legal(fmt::format("more than {}", first.step))
        .fix("raise training.steps, or resume from an earlier checkpoint");
  return first;
}

std::string describe_start(const Job& job, const Plan& plan, const ResumePoint& first) {
  std::string text = first.step > 0 ? fmt::format("resumed after step {} from ", first.step)
                                    : "starts at step 1 with the weights of ";
  text += job.run.resume;
  if (const auto steps = steps_of_foreign_trainer(job.run.resume); steps && first.step == 0)
    text += fmt::format(
        "\nits training state, after {} steps, is of Hugging Face's Trainer and not ours: moments, learning "
        "rate and samples begin anew",
        *steps);
  if (first.weights_alone)
    text +=
        "\nits training state is of a job that learns from rewards: moments, learning rate and samples begin "
        "anew";
  if (first.step > 0 && !has_moments(plan, job.run.resume))
    text += "\nwarning: it has no moments of the optimizer: they start at zero, and losses will be others";
  const std::optional<Job> former = former_job(job);
  return text + "\n" + (former && first.step > 0 ? describe_resume_changes(job, *former, first) : "");
}

}  // namespace hyperrun
