#include "runtime/run/omni_inputs.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/device/state_files.h"
#include "runtime/media/manifest.h"
#include "runtime/run/text_data.h"

namespace hyperrun {
namespace {

// A tokenizer trained on the samples' texts: all single bytes, and the merges that fit into the vocabulary.
Tokenizer trained_on(const MediaManifest& manifest, const Job& job) {
  std::set<std::string> texts;
  for (const MediaSample& s : manifest.samples) texts.insert({s.text, s.category});
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return Tokenizer::train(all, std::min(job.model.vocab, Tokenizer::kMinVocab));
}

}  // namespace

std::vector<std::int64_t> OmniInputs::most_items() const {
  std::vector<std::int64_t> most;
  for (std::size_t e = 0; e < encoders.size(); ++e)
    most.push_back(std::max(train->most_items(e), held_back->most_items(e)));
  return most;
}

OmniInputs read_omni_inputs(const LoadedJob& loaded) {
  const Job& job = loaded.job;
  OmniInputs inputs;
  std::vector<EncoderSpec> encoders;
  for (const ProgramSpec& program : job.programs) {
    if (program.does != kEncodes) continue;
    inputs.encoders.push_back(program.name);
    encoders.push_back(program.encoder);
  }
  const MediaManifest manifest = read_manifest(job.data.samples);
  std::optional<Tokenizer> tokenizer = find_tokenizer(job);
  inputs.tokenizer =
      std::make_unique<Tokenizer>(tokenizer ? *std::move(tokenizer) : trained_on(manifest, job));
  check_vocab(job, *inputs.tokenizer);
  inputs.train =
      std::make_unique<OmniSplit>(job, encoders, only(manifest, MediaSplit::kTrain), *inputs.tokenizer);
  inputs.held_back =
      std::make_unique<OmniSplit>(job, encoders, only(manifest, MediaSplit::kHeldBack), *inputs.tokenizer);
  if (inputs.train->size() == 0)
    throw Error(Code::kBadCorpus, "all samples are held back")
        .at(job.data.samples)
        .legal("samples with \"split\": \"train\"")
        .fix("correct the manifest");
  return inputs;
}

std::optional<ProgramsState> check_omni_start(const Job& job, const OmniPlan& plan) {
  std::vector<std::string> parts;
  std::vector<const Plan*> plans;
  const auto add = [&](const CompiledProgram& program) {
    parts.push_back(program.name);
    plans.push_back(&program.plan);
  };
  for (const OmniPlan::Encoder& e : plan.encoders) add(e.program);
  for (const CompiledProgram& stage : plan.stages) add(stage);
  std::optional<ProgramsState> state = state_to_resume(job, kOfEncoders, parts, false);
  for (std::size_t p = 0; state && p < parts.size(); ++p)
    check_state(*plans[p], std::filesystem::path(job.run.resume) / parts[p]);
  return state;
}

OmniPasses passes_of(const std::vector<std::vector<std::int64_t>>& items,
                     const std::vector<std::int64_t>& items_of_pass) {
  OmniPasses passes;
  for (const std::vector<std::int64_t>& of_micro_batch : items) {
    std::vector<std::int32_t>& list = passes.emplace_back();
    for (std::size_t e = 0; e < of_micro_batch.size(); ++e)
      list.push_back(
          static_cast<std::int32_t>((of_micro_batch[e] + items_of_pass[e] - 1) / items_of_pass[e]));
  }
  return passes;
}

}  // namespace hyperrun
