#include "runtime/spec/job_check_programs.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "runtime/ir/programs.h"
#include "runtime/spec/job_check.h"
#include "runtime/spec/job_check_media.h"
#include "runtime/spec/job_check_model.h"
#include "runtime/spec/job_legal.h"
#include "runtime/spec/job_mesh.h"

namespace hyperrun {
namespace {

class ProgramsChecker {
 public:
  ProgramsChecker(const Job& job, const JobSource& source) : job_(job), source_(source) {}

  std::vector<Error> run() && {
    if (job_.programs.empty()) {
      without_programs();
      return std::move(errors_);
    }
    const bool media = job_.media.learns();
    blocks();
    names();
    media ? check_media_blocks(job_, source_, errors_) : reinforcement_blocks();
    if (!media) one_of_each();
    if (!errors_.empty()) return std::move(errors_);
    for (std::size_t p = 0; p < job_.programs.size(); ++p) program(p);
    media ? check_media(job_, source_, errors_) : learning();
    if (!errors_.empty()) return std::move(errors_);
    for (std::size_t p = 0; p < job_.programs.size(); ++p) alone(p);
    return std::move(errors_);
  }

 private:
  Error& report(const std::string& cause, const std::string& field, Code code = Code::kBadValue) {
    return errors_.emplace_back(Error(code, cause).at(source_.place(field)));
  }

  void without_programs() {
    if (job_.reinforcement != ReinforcementSpec{})
      report("no program learns by reinforcement", "reinforcement")
          .legal("with programs")
          .fix("add programs, or leave reinforcement out");
    if (job_.media.learns())
      report("no program encodes", "media").legal("with programs").fix("add programs, or leave media out");
    if (!job_.data.tasks.empty())
      report("tasks are for jobs that learn by reinforcement", "data.tasks")
          .legal("with programs and reinforcement")
          .fix("give a corpus instead");
    if (!job_.data.samples.empty())
      report("samples are for jobs with encoders", "data.samples")
          .legal("with programs and media")
          .fix("give a corpus instead");
  }

  // Refuses blocks of the job that belong in each program, or that have no meaning with several programs.
  void blocks() {
    for (const auto& [block, given] : {std::pair{"parallel", job_.parallel != ParallelSpec{}},
                                       {"memory", job_.memory != MemorySpec{}},
                                       {"inference", job_.inference != InferenceSpec{}}})
      if (given)
        report(std::string("a job of several programs has ") + in_quotes(block) + " in each of them", block)
            .legal(std::string("programs { ... ") + block + " { ... } }")
            .fix("move it into the programs that it is about");
    for (const auto& [block, given] : {std::pair{"run.generate", job_.run.generate != GenerateSpec{}},
                                       {"run.shrink", job_.run.shrink != ShrinkSpec{}},
                                       {"run.on_divergence", job_.run.on_divergence != kStop},
                                       {"run.divergence_jump", job_.run.divergence_jump != 0},
                                       {"run.integrity.every", job_.run.integrity.every != 0},
                                       {"run.copy_every", job_.run.copy_every != 0}})
      if (given)
        report("a job of several programs has no " + in_quotes(std::string(block).substr(4)), block)
            .legal("without it")
            .fix("leave it out");
  }

  void reinforcement_blocks() {
    if (job_.reinforcement.samples == 0)
      report("nothing says what the programs do together", "programs", Code::kMissingField)
          .legal("reinforcement { samples: ... tokens: ... }, or media { most: ... } with encoders")
          .fix("add one of these blocks");
    if (!job_.training.policy.trains())
      report("the programs learn from rewards, and training has no policy", "training", Code::kMissingField)
          .legal("policy { clip: ... }")
          .fix("add a policy block to training");
    if (job_.data.tasks.empty())
      report("the programs have no tasks", "data", Code::kMissingField)
          .legal("a file with {\"prompt\": ..., \"answer\": ...} a line")
          .fix("add tasks: ... to data");
  }

  void names() {
    std::set<std::string> seen;
    for (std::size_t p = 0; p < job_.programs.size(); ++p) {
      const std::string& name = job_.programs[p].name;
      if (!legal_axis_name(name))
        report("a program cannot be called " + in_quotes(name), block_of(p) + ".name")
            .legal("a letter, then letters, digits or '_'")
            .fix("rename it");
      if (!seen.insert(name).second)
        report("two programs are called " + in_quotes(name), block_of(p) + ".name")
            .legal("each name once")
            .fix("rename one");
    }
  }

  void one_of_each() {
    for (const auto& [does, least] : {std::pair{kGenerates, 1}, {kRewards, 1}, {kScores, 0}, {kTrains, 1}}) {
      const auto count = std::ranges::count(job_.programs, does, &ProgramSpec::does);
      if (count >= least && count <= 1) continue;
      report(count == 0 ? "no program does " + in_quotes(does)
                        : fmt::format("{} programs do {}", count, in_quotes(does)),
             "programs")
          .legal(least == 0 ? "none or one" : "one")
          .fix(count == 0 ? "add programs { name: ... does: " + in_quotes(does) + " ... }"
                          : "keep one of them");
    }
    for (std::size_t p = 0; p < job_.programs.size(); ++p)
      if (job_.programs[p].does == kEncodes)
        report("nothing is encoded where programs learn from rewards", block_of(p) + ".does")
            .legal("\"generate\", \"reward\", \"score\", \"train\"")
            .fix("choose a legal value, or give the job a media block");
    for (std::size_t p = 0; p < job_.programs.size(); ++p)
      if (job_.programs[p].does.empty())
        report("program " + in_quotes(job_.programs[p].name) + " does nothing", block_of(p),
               Code::kMissingField)
            .legal(legal_values("does"))
            .fix("add does: ...");
  }

  const std::string& name_of(std::string_view does) const {
    static const std::string none;
    const ProgramSpec* found = find_program(job_, does);
    return found == nullptr ? none : found->name;
  }

  void program(std::size_t p) {
    const ProgramSpec& program = job_.programs[p];
    const std::int32_t most = job_.supernode.devices;
    const bool reward = program.does == kRewards;
    if (reward ? program.devices != 0 : program.devices < 1 || program.first_device + program.devices > most)
      report(reward ? "a rule needs no devices"
                    : fmt::format("program {} has devices {} to {} of {}", in_quotes(program.name),
                                  program.first_device, program.first_device + program.devices - 1, most),
             block_of(p) + ".devices")
          .legal(reward ? "0" : fmt::format("1 to {}", std::max(1, most - program.first_device)))
          .fix("choose a legal number, or another first_device");
    if (program.does != kEncodes && program.encoder != EncoderSpec{})
      report(in_quotes(program.name) + " encodes nothing", block_of(p) + ".encoder")
          .legal("in programs that do \"encode\"")
          .fix("leave encoder out");
    if (program.does != kGenerates && program.inference != InferenceSpec{})
      report(in_quotes(program.name) + " generates nothing", block_of(p) + ".inference")
          .legal("in the program that generates")
          .fix("leave inference out");
    if (!job_.media.learns()) inputs(p);
  }

  void inputs(std::size_t p) {
    const ProgramSpec& program = job_.programs[p];
    std::set<std::string> needs;
    if (program.does != kGenerates) needs.insert(name_of(kGenerates));
    if (program.does == kTrains) {
      needs.insert(name_of(kRewards));
      if (find_program(job_, kScores) != nullptr) needs.insert(name_of(kScores));
    }
    if (const std::set<std::string> given(program.inputs.begin(), program.inputs.end());
        given != needs || given.size() != program.inputs.size())
      report(in_quotes(program.name) + " takes " + describe_names(given), block_of(p) + ".inputs")
          .legal(describe_names(needs) + ", each once: it is the program that does " +
                 in_quotes(program.does))
          .fix("name these programs");
    const std::string& weights = program.does == kGenerates ? name_of(kTrains) : "";
    if (program.weights != weights)
      report(
          in_quotes(program.name) + (program.weights.empty() ? " has no weights" : " has weights of its own"),
          block_of(p) + ".weights")
          .legal(weights.empty() ? "none" : in_quotes(weights))
          .fix(weights.empty() ? "leave weights out" : "name the program that learns");
  }

  void learning() {
    const ReinforcementSpec& r = job_.reinforcement;
    if (job_.training.batch % r.samples != 0)
      report(of(r.samples, "samples") + " does not divide " + of(job_.training.batch, "batch"),
             "reinforcement.samples")
          .legal(list(divisors(job_.training.batch)))
          .fix("choose a legal value of 2 or more, or another batch");
    if (r.tokens >= job_.model.sequence)
      report(of(r.tokens, "tokens") + " leave no room for a prompt in " + of(job_.model.sequence, "sequence"),
             "reinforcement.tokens")
          .legal(fmt::format("1 to {}", job_.model.sequence - 1))
          .fix("generate fewer tokens, or make the sequence longer");
    if (job_.training.policy.kl > 0 && find_program(job_, kScores) == nullptr)
      report("no program tells what the divergence is from", "training.policy.kl")
          .legal("0, or a program that does \"score\"")
          .fix("leave kl out, or add programs { name: ... does: \"score\" ... }");
    if (r.held_back == 1)
      report("every task would be held back", "reinforcement.held_back")
          .legal("0, or 2 or more")
          .fix("hold back fewer");
  }

  // Checks a program as if there were no others.
  void alone(std::size_t p) {
    const ProgramSpec& program = job_.programs[p];
    if (program.does == kRewards) return;
    for (Error& e : check_job(job_of(job_, program), source_of(source_, p))) errors_.push_back(std::move(e));
  }

  const Job& job_;
  const JobSource& source_;
  std::vector<Error> errors_;
};

}  // namespace

JobSource source_of(const JobSource& whole, std::size_t program) {
  JobSource source{whole.path, {}};
  const std::string own = block_of(program) + ".";
  for (const auto& [field, position] : whole.fields)
    if (field.starts_with(own))
      source.fields[field.substr(own.size())] = position;
    else if (!field.starts_with("programs["))
      source.fields[field] = position;
  if (const auto block = whole.fields.find(block_of(program)); block != whole.fields.end())
    source.fields.try_emplace("parallel", block->second);
  return source;
}

std::string block_of(std::size_t program) { return fmt::format("programs[{}]", program); }

std::string describe_names(const std::set<std::string>& names) {
  std::string words;
  for (const std::string& name : names) words += (words.empty() ? "" : ", ") + in_quotes(name);
  return words.empty() ? "none" : words;
}

std::vector<Error> fill_programs(Job& job, const JobSource& source) {
  std::vector<Error> errors;
  for (std::size_t p = 0; p < job.programs.size(); ++p) {
    Job alone = job_of(job, job.programs[p]);
    for (Error& e : fill_defaults(alone, source_of(source, p))) errors.push_back(std::move(e));
    job.programs[p].parallel = std::move(alone.parallel);
  }
  return errors;
}

std::vector<Error> check_programs(const Job& job, const JobSource& source) {
  return ProgramsChecker(job, source).run();
}

}  // namespace hyperrun
