#include "runtime/spec/job_check_media.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>

#include "runtime/ir/limits.h"
#include "runtime/ir/programs.h"
#include "runtime/spec/job_check_model.h"
#include "runtime/spec/job_check_programs.h"
#include "runtime/spec/job_legal.h"

namespace hyperrun {
namespace {

class MediaChecker {
 public:
  MediaChecker(const Job& job, const JobSource& source, std::vector<Error>& errors)
      : job_(job), source_(source), errors_(errors) {}

  void blocks() {
    if (job_.reinforcement != ReinforcementSpec{} || job_.training.policy.trains())
      report("what learns from pictures and sounds does not learn from rewards",
             job_.reinforcement != ReinforcementSpec{} ? "reinforcement" : "training.policy")
          .legal("media, or reinforcement with a policy")
          .fix("leave one of them out");
    if (job_.data.samples.empty())
      report("the programs have nothing to learn from", "data", Code::kMissingField)
          .legal("a manifest of samples (docs/omni_data.md)")
          .fix("add samples: ... to data");
    if (!job_.data.corpus.empty() || !job_.data.tasks.empty())
      report("a job with encoders learns from samples alone",
             job_.data.corpus.empty() ? "data.tasks" : "data.corpus")
          .legal("samples, and a tokenizer")
          .fix("leave it out");
    programs();
  }

  void together() {
    if (job_.media.least > job_.media.most)
      report(of(job_.media.least, "least") + " is more than " + of(job_.media.most, "most"), "media.least")
          .legal(fmt::format("1 to {}", job_.media.most))
          .fix("choose a legal number");
    const ProgramSpec& trains = *find_program(job_, kTrains);
    const PipelineSpec& pipeline = trains.parallel.pipeline;
    for (std::size_t p = 0; p < job_.programs.size(); ++p) {
      const ProgramSpec& program = job_.programs[p];
      if (program.does == kEncodes) encoder(p);
      if (program.does == kTrains && pipeline.chunks > 1)
        report("the stages of a job with encoders are dispatched one by one, one a device",
               block_of(p) + ".parallel.pipeline.chunks")
            .legal("1")
            .fix("leave chunks out");
    }
    if (job_.model.tied_head && !pipeline.axis.empty())
      report("the head of the last stage cannot be the embedding of the first", "model.tied_head")
          .legal("false, where the text model has stages")
          .fix("leave tied_head out, or the pipeline");
    if (job_.model.mtp.layers > 0)
      report("modules that predict further know no features", "model.mtp")
          .legal("without it")
          .fix("leave mtp out");
  }

 private:
  Error& report(const std::string& cause, const std::string& field, Code code = Code::kBadValue) {
    return errors_.emplace_back(Error(code, cause).at(source_.place(field)));
  }

  void programs() {
    std::set<std::string> encoders;
    for (std::size_t p = 0; p < job_.programs.size(); ++p) {
      const ProgramSpec& program = job_.programs[p];
      if (program.does == kEncodes) encoders.insert(program.name);
      if (program.does != kEncodes && program.does != kTrains)
        report(in_quotes(program.name) + " has nothing to do in a job with media", block_of(p) + ".does")
            .legal(R"("encode", "train")")
            .fix("choose a legal value");
      if (program.does == kEncodes && program.encoder.input.empty())
        report("the program " + in_quotes(program.name) + " has no model", block_of(p), Code::kMissingField)
            .legal("encoder { input: ... tokens: ... layers: ... hidden: ... heads: ... }")
            .fix("add an encoder block");
    }
    if (const auto count = std::ranges::count(job_.programs, kTrains, &ProgramSpec::does); count != 1)
      report(fmt::format("{} programs do \"train\"", count), "programs")
          .legal("one")
          .fix(count == 0 ? R"(add programs { name: ... does: "train" ... })" : "keep one of them");
    if (encoders.empty())
      report("no program encodes", "programs")
          .legal("one or more")
          .fix(R"(add programs { name: ... does: "encode" encoder { ... } ... })");
    for (std::size_t p = 0; p < job_.programs.size(); ++p) inputs(p, encoders);
  }

  void inputs(std::size_t p, const std::set<std::string>& encoders) {
    const ProgramSpec& program = job_.programs[p];
    const std::set<std::string> needs = program.does == kTrains ? encoders : std::set<std::string>{};
    const std::set<std::string> given(program.inputs.begin(), program.inputs.end());
    if (given != needs || given.size() != program.inputs.size())
      report(in_quotes(program.name) + " takes " + describe_names(given), block_of(p) + ".inputs")
          .legal(describe_names(needs) + ", each once")
          .fix(program.does == kTrains ? "name the programs that encode" : "leave inputs out");
    if (!program.weights.empty())
      report(in_quotes(program.name) + " has weights of its own", block_of(p) + ".weights")
          .legal("none")
          .fix("leave weights out");
  }

  void encoder(std::size_t p) {
    const ProgramSpec& program = job_.programs[p];
    const EncoderSpec& e = program.encoder;
    const std::string block = block_of(p) + ".encoder.";
    if (e.hidden % e.heads != 0 || e.hidden / e.heads % 2 != 0)
      report(of(e.heads, "heads") + " do not divide " + of(e.hidden, "hidden") + " into even parts",
             block + "heads")
          .legal("divisors of half of hidden")
          .fix("choose one of these");
    if (!program.parallel.pipeline.axis.empty())
      report("an encoder has no stages", block_of(p) + ".parallel.pipeline")
          .legal("without it")
          .fix("leave pipeline out");
    if (e.tokens >= job_.model.sequence)
      report(of(e.tokens, "tokens") + " of an item leave no room for a text in " +
                 of(job_.model.sequence, "sequence"),
             block + "tokens")
          .legal(fmt::format("1 to {}", job_.model.sequence - 1))
          .fix("take larger vectors, or make the sequence longer");
    for (const auto& [field, of_other, foreign] :
         {std::tuple{"patch", kAudio, e.patch != EncoderSpec{}.patch},
          {"mel_bins", kImage, e.mel_bins != EncoderSpec{}.mel_bins},
          {"frames", kImage, e.frames != EncoderSpec{}.frames}})
      if (e.input == of_other && foreign)
        report(in_quotes(e.input) + " has no " + in_quotes(field), block + field)
            .legal("without it")
            .fix("leave it out");
  }

  const Job& job_;
  const JobSource& source_;
  std::vector<Error>& errors_;
};

}  // namespace

void check_media_blocks(const Job& job, const JobSource& source, std::vector<Error>& errors) {
  MediaChecker(job, source, errors).blocks();
}

void check_media(const Job& job, const JobSource& source, std::vector<Error>& errors) {
  MediaChecker(job, source, errors).together();
}

void fill_encoders(Job& job, const JobSource& source) {
  for (std::size_t i = 0; i < job.programs.size(); ++i) {
    EncoderSpec& e = job.programs[i].encoder;
    if (!source.has(fmt::format("programs[{}].encoder.ffn", i)))
      e.ffn = static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{4} * e.hidden, limits::kFfn));
  }
}

}  // namespace hyperrun
