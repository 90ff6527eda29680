// hyperrun generate: continues prompts with a trained model.
#include "runtime/generate/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "runtime/advise/fit.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/control/controller.h"
#include "runtime/generate/completions.h"
#include "runtime/generate/generated_file.h"
#include "runtime/generate/generation_driver.h"
#include "runtime/generate/source.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/text_lines.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/rank/room.h"
#include "runtime/run/device_use.h"
#include "runtime/run/drive.h"
#include "runtime/run/failure.h"
#include "runtime/run/generation.h"
#include "runtime/run/restarts.h"
#include "runtime/run/resume.h"
#include "runtime/run/text_data.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDefaultTokens = 64;  // limit for each prompt; fewer if no more fit

void apply_arguments(const GenerateArguments& a, Job& job) {
  GenerateSpec& g = job.run.generate;
  if (a.tokens > 0) g.tokens = a.tokens;
  g.temperature = a.temperature.value_or(g.temperature);
  g.top_k = a.top_k.value_or(g.top_k);
  g.top_p = a.top_p.value_or(g.top_p);
  job.run.seed = a.seed.value_or(job.run.seed);
  if (a.slots > 0) job.inference.slots = a.slots, job.inference.pages = 0;
  job.run.restarts = a.restarts.value_or(job.run.restarts);
  if (a.context > 0) job.inference.context = a.context, job.inference.pages = 0;
  job.run.clock = kNative;
  job.run.shrink = {};
}

Tokenizer tokenizer_of(const Job& job) {
  const fs::path beside = fs::path(job.run.resume) / "tokenizer.json";
  if (fs::exists(beside)) return read_tokenizer(beside);
  if (!job.data.tokenizer.empty()) return read_tokenizer(job.data.tokenizer);
  throw Error(Code::kMissingFile, "the checkpoint has no tokenizer.json, and the job names none")
      .at(job.run.resume)
      .fix("put the tokenizer's file beside the weights");
}

std::vector<std::string> prompts_of(const GenerateArguments& a, const Job& job) {
  std::vector<std::string> prompts = a.prompts;
  if (!a.prompt_file.empty()) {
    const std::string text = read_file(a.prompt_file, Code::kMissingFile);
    for (const std::string_view line : lines_of(text))
      if (!line.empty()) prompts.emplace_back(line);
    if (prompts.size() == a.prompts.size())
      throw Error(Code::kUsage, "there is no prompt in it")
          .at(a.prompt_file)
          .legal("a prompt a line; empty lines are left out")
          .fix("write one, or give --prompt");
  }
  if (prompts.empty()) prompts.push_back(job.run.generate.prompt);
  return prompts;
}

// The number of tokens to add to a prompt of `length` tokens: the job's, or as many as fit up to the default.
std::int64_t tokens_to_add(const Job& job, std::int64_t length) {
  if (job.run.generate.tokens > 0) return job.run.generate.tokens;
  return std::clamp(generation_shape(job).context - length, std::int64_t{1}, kDefaultTokens);
}

Session session_of(const GenerationSource& source) try {
  Session session;
  session.job = source.loaded.job;
  session.plan = compile_generation(session.job).plan;
  if (source.alone) session.job.supernode.hbm = session.plan.peak();
  if (!source.alone) require_generation_fit(source.loaded, session.plan);
  check_checkpoint(session.job, session.plan);
  session.run_directory = require_room(session, ranks_of_this_host(session.job.supernode.devices));
  return session;
} catch (const Error& e) {
  throw source.alone ? e : at_job_line(e, source.loaded.source);
}

bool is_split_weight_of_a_layer(const StateTensor& t) {
  return t.cls == TensorClass::kWeight && t.name.starts_with("layers.") &&
         std::ranges::any_of(t.layout.dims, [](const AxisList& axes) { return !axes.empty(); });
}

// Warns if the plan splits no layer: then several devices are hardly faster than one, and each holds all
// layers.
void warn_if_no_layer_is_split(const Session& session) {
  const int devices = session.job.supernode.devices;
  const auto splits = [](const Role& r) { return std::ranges::any_of(r.state, is_split_weight_of_a_layer); };
  if (devices == 1 || std::ranges::any_of(session.plan.roles, splits)) return;
  const ModelSpec& model = session.job.model;
  std::fprintf(
      stderr,
      "--devices %d: nothing of this model's layers divides by %d, so each device holds and computes all "
      "of them; a number that divides the heads of keys and values (%d) or ffn (%d) shares that\n",
      devices, devices, model.kv_heads, model.ffn);
}

// Whatever the texts depend on besides the prompts. The layout is among them: sums in another order have
// other last bits, and may draw another token.
GenerationSettings settings_of(const Job& job, const Plan& plan) {
  const GenerateSpec& g = job.run.generate;
  return {{"checkpoint", fs::weakly_canonical(job.run.resume)},
          {"seed", std::to_string(job.run.seed)},
          {"tokens", std::to_string(g.tokens)},
          {"temperature", fmt::format("{}", g.temperature)},
          {"top_k", std::to_string(g.top_k)},
          {"top_p", fmt::format("{}", g.top_p)},
          {"context", std::to_string(generation_shape(job).context)},
          {"precision", job.training.precision},
          {"layout", fmt::format("{} devices ({})", job.supernode.devices, describe_mesh(plan.mesh))}};
}

// Returns the exit status of a generation with all results.
int conclude(GeneratedFile& file, const std::string& name) {
  file.finish();
  std::printf("%s: %lld texts", name.c_str(), static_cast<long long>(file.count()));
  if (file.from_before() > 0)
    std::printf(", %lld of them from before", static_cast<long long>(file.from_before()));
  std::printf("\n");
  return 0;
}

// The prompts as tokens, with the tokens to add.
std::vector<Prompt> tokens_of(const std::vector<std::string>& prompts, const Tokenizer& tokenizer,
                              const Job& job) {
  std::vector<Prompt> list;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::vector<std::int32_t> tokens = encode_from_begin(tokenizer, prompts[i]);
    if (tokens.empty()) tokens.push_back(tokenizer.end_of_text());
    const std::int64_t grow = tokens_to_add(job, std::ssize(tokens));
    list.push_back({static_cast<std::int32_t>(i), std::move(tokens), grow});
  }
  return list;
}

// Generates until each prompt has its text. Devices that are lost are started again for the prompts that have
// none yet: what is drawn depends on the seed, the prompt's number and the position alone.
control::Outcome generate_all(const Session& session, const std::vector<Prompt>& prompts,
                              const std::vector<std::int32_t>& ends, Completions& completions) {
  Restarts restarts(session.job.run.restarts);
  for (;;) {
    Generation generation(session.job, session.plan, ends);
    for (const Prompt& prompt : prompts)
      if (!completions.has(static_cast<std::size_t>(prompt.id))) generation.add(prompt);
    GenerationDriver driver(session, generation, completions);
    driver.when_failed([&](const Error& cause) {
      if (!restarts.possible(cause.code())) report_failure(cause, [] {});
    });
    control::Outcome outcome = drive(session.job, session.job.name, driver);
    if (outcome.ok()) driver.print_times();
    if (!outcome.error || outcome.signal != 0 || !restarts.possible(outcome.error->code())) return outcome;
    if (!restarts.again(outcome, completions.ended())) {
      report_failure(*outcome.error, [] {});
      return outcome;
    }
    completions.begin_again();
    const Error& cause = *outcome.error;
    std::fprintf(stderr, "%s: %s\nrestart %d of %d, for the prompts without a text\n",
                 std::string(name(cause.code())).c_str(), cause.cause().c_str(), restarts.in_a_row(),
                 restarts.limit());
  }
}

}  // namespace

int generate_text(const GenerateArguments& arguments) {
  GenerationSource source = find_source(arguments);
  apply_arguments(arguments, source.loaded.job);
  const Session session = session_of(source);
  if (source.alone) warn_if_no_layer_is_split(session);
  const Tokenizer tokenizer = tokenizer_of(session.job);
  check_vocab(session.job, tokenizer);
  const std::vector<std::string> prompts = prompts_of(arguments, session.job);
  const std::vector<std::int32_t> ends = ends_of_text(session.job, tokenizer);
  std::optional<GeneratedFile> file;
  if (!arguments.out.empty())
    file.emplace(arguments.out, settings_of(session.job, session.plan), prompts, arguments.resumes);
  if (file && file->is_whole()) return conclude(*file, arguments.out);
  std::signal(SIGPIPE, [](int) {});
  Completions completions(tokenizer, ends, prompts, arguments.json, file ? &*file : nullptr);
  const control::Outcome outcome =
      generate_all(session, tokens_of(prompts, tokenizer, session.job), ends, completions);
  if (outcome.ok() && file) return conclude(*file, arguments.out);
  if (!outcome.ok() && file && file->count() > 0)
    std::fprintf(stderr, "%lld of %zu texts are in %s.partial; the same command with --resume goes on\n",
                 static_cast<long long>(file->count()), prompts.size(), arguments.out.c_str());
  if (outcome.signal != 0) std::fprintf(stderr, "%s\n", outcome.reason().c_str());
  return outcome.exit_status();
}

}  // namespace hyperrun
