// hyperrun generate: continues prompts with a trained model.
#include "runtime/run/generate.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "runtime/advise/fit.h"
#include "runtime/base/error.h"
#include "runtime/base/median.h"
#include "runtime/base/utf8.h"
#include "runtime/compile/compile.h"
#include "runtime/control/controller.h"
#include "runtime/ir/families.h"
#include "runtime/ir/programs.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "runtime/model/checkpoint/text_lines.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/rank/protocol.h"
#include "runtime/rank/room.h"
#include "runtime/report/generation.h"
#include "runtime/report/run_directory.h"
#include "runtime/run/device_use.h"
#include "runtime/run/drive.h"
#include "runtime/run/failure.h"
#include "runtime/run/generated_file.h"
#include "runtime/run/generation.h"
#include "runtime/run/resume.h"
#include "runtime/run/session_driver.h"
#include "runtime/run/text_data.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/session_io.h"
#include "runtime/spec/stats_io.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDefaultTokens = 64;  // limit for each prompt; fewer if no more fit

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

struct Source {
  LoadedJob loaded;
  bool alone = false;  // the source is a checkpoint, and the job was made for it
};

void refuse_option(const char* option, const char* legal) {
  throw Error(Code::kUsage, fmt::format("{} does not go with this source", option))
      .at("hyperrun generate")
      .legal(legal)
      .fix("leave it out");
}

Source find_job(const GenerateArguments& a) {
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

void apply_arguments(const GenerateArguments& a, Job& job) {
  GenerateSpec& g = job.run.generate;
  if (a.tokens > 0) g.tokens = a.tokens;
  g.temperature = a.temperature.value_or(g.temperature);
  g.top_k = a.top_k.value_or(g.top_k);
  g.top_p = a.top_p.value_or(g.top_p);
  job.run.seed = a.seed.value_or(job.run.seed);
  if (a.slots > 0) job.inference.slots = a.slots, job.inference.pages = 0;
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

// Prints each completion once it is complete, in the order of the prompts. With a file they go there instead,
// in the order in which they come.
class CompletionPrinter {
 public:
  // A last token that is one of `ends` is not printed. `file` is null without one.
  CompletionPrinter(const Tokenizer& tokenizer, std::vector<std::int32_t> ends,
                    std::vector<std::string> prompts, bool json, GeneratedFile* file)
      : tokenizer_(tokenizer),
        ends_(std::move(ends)),
        prompts_(std::move(prompts)),
        json_(json),
        file_(file),
        tokens_(prompts_.size()) {}

  void add(const SampledToken& grown) {
    const auto id = static_cast<std::size_t>(grown.id);
    tokens_[id].push_back(grown.token);
    ++count_;
    if (grown.last && file_ != nullptr) return file_->add(result(id));
    if (grown.last) ended_.insert(id);
    for (; ended_.contains(next_); ++next_) print(next_);
  }
  std::int64_t count() const { return count_; }

 private:
  GeneratedText result(std::size_t id) const {
    std::vector<std::int32_t> text = tokens_[id];
    if (!text.empty() && std::ranges::count(ends_, text.back()) > 0) text.pop_back();
    return {static_cast<std::int64_t>(id), valid_utf8(prompts_[id]), valid_utf8(tokenizer_.decode(text)),
            tokens_[id]};
  }

  void print(std::size_t id) const {
    const GeneratedText r = result(id);
    if (json_)
      std::printf("%s\n", to_json_line(r).c_str());
    else
      std::printf("%s%s%s\n", prompts_.size() > 1 && id > 0 ? "\n" : "", r.prompt.c_str(), r.text.c_str());
    std::fflush(stdout);
  }

  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ends_;
  std::vector<std::string> prompts_;
  bool json_;
  GeneratedFile* file_;
  std::vector<std::vector<std::int32_t>> tokens_;  // by prompt
  std::set<std::size_t> ended_;                    // complete prompts
  std::size_t next_ = 0;                           // the next prompt to print
  std::int64_t count_ = 0;                         // tokens of all prompts
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The times of one Program's passes: in the driver, from choosing a pass's requests to taking its tokens, and
// on the devices alone.
class PassTimes {
 public:
  void add(double seconds, std::span<const tasks::InvocationDone> results) {
    double device = 0;
    for (const tasks::InvocationDone& r : results) {
      const InvocationStats stats = stats_from_bytes(r.report, "the report of a device");
      device = std::max(device, 1e-9 * static_cast<double>(stats.end - stats.begin));
    }
    whole_.push_back(seconds);
    devices_.push_back(device);
  }

  // Prints medians, without the first pass if there are more: it touches its memory for the first time.
  void print(const char* name) {
    if (whole_.empty()) return;
    std::fprintf(stderr, "%s: %zu pass%s, the median of %.3f ms, of it %.3f ms on the devices\n", name,
                 whole_.size(), whole_.size() == 1 ? "" : "es", 1e3 * typical(whole_),
                 1e3 * typical(devices_));
  }

 private:
  static double typical(const std::vector<double>& passes) {
    return median({passes.begin() + (passes.size() > 1 ? 1 : 0), passes.end()});
  }

  std::vector<double> whole_, devices_;  // seconds, by pass
};

// Loads the weights, then runs passes until all prompts are complete.
class GenerationDriver : public SessionDriver {
 public:
  GenerationDriver(const Session& session, Generation& generation, CompletionPrinter& printer)
      : SessionDriver(session, nullptr), generation_(generation), printer_(printer) {}

  // Prints the times of generation, without starting and loading.
  void print_times() {
    std::fprintf(stderr, "%lld tokens in %.2f s, %.1f a second; the first after %.3f s\n",
                 static_cast<long long>(printer_.count()), last_,
                 static_cast<double>(printer_.count()) / std::max(last_, 1e-9), first_);
    prefill_.print("prefill");
    decode_.print("decode");
  }

 protected:
  std::optional<tasks::Invocation> next() override {
    if (stage_ == Stage::kBegin) {
      stage_ = Stage::kLoad;
      return tasks::Invocation{.program = kLoadProgram};
    }
    if (stage_ == Stage::kLoad) return std::nullopt;
    std::optional<tasks::Invocation> next = generation_.next();
    if (next) pass_begun_ = now();
    return next;
  }

  void done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) override {
    if (!generation_.is_pass(invocation)) {
      stage_ = Stage::kGenerate;
      begun_ = now();
      return;
    }
    (generation_.is_prefill(invocation) ? prefill_ : decode_).add(now() - pass_begun_, results);
    for (const SampledToken& grown : generation_.done(results)) printer_.add(grown);
    last_ = now() - begun_;
    if (first_ == 0 && printer_.count() > 0) first_ = last_;
  }

 private:
  enum class Stage { kBegin, kLoad, kGenerate };

  Generation& generation_;
  CompletionPrinter& printer_;
  Stage stage_ = Stage::kBegin;
  double begun_ = 0, pass_begun_ = 0;
  double first_ = 0, last_ = 0;  // times of the first and the last token since begun_, s
  PassTimes prefill_, decode_;
};

Session session_of(const Source& source) try {
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

}  // namespace

int generate_text(const GenerateArguments& arguments) {
  Source source = find_job(arguments);
  apply_arguments(arguments, source.loaded.job);
  const Session session = session_of(source);
  if (source.alone) warn_if_no_layer_is_split(session);
  const Tokenizer tokenizer = tokenizer_of(session.job);
  check_vocab(session.job, tokenizer);
  const std::vector<std::string> prompts = prompts_of(arguments, session.job);
  const std::vector<std::int32_t> ends = ends_of_text(session.job, tokenizer);
  Generation generation(session.job, session.plan, ends);
  std::optional<GeneratedFile> file;
  if (!arguments.out.empty())
    file.emplace(arguments.out, settings_of(session.job, session.plan), prompts, arguments.resumes);
  if (file && file->is_whole()) return conclude(*file, arguments.out);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (file && file->has(static_cast<std::int64_t>(i))) continue;
    std::vector<std::int32_t> tokens = encode_from_begin(tokenizer, prompts[i]);
    if (tokens.empty()) tokens.push_back(tokenizer.end_of_text());
    const std::int64_t grow = tokens_to_add(session.job, std::ssize(tokens));
    generation.add({static_cast<std::int32_t>(i), std::move(tokens), grow});
  }
  std::signal(SIGPIPE, [](int) {});
  CompletionPrinter printer(tokenizer, ends, prompts, arguments.json, file ? &*file : nullptr);
  GenerationDriver driver(session, generation, printer);
  driver.when_failed([](const Error& cause) { report_failure(cause, [] {}); });
  const control::Outcome outcome = drive(session.job, session.job.name, driver);
  if (outcome.ok()) {
    driver.print_times();
    if (file) return conclude(*file, arguments.out);
  } else if (file && file->count() > 0) {
    std::fprintf(stderr, "%lld of %zu texts are in %s.partial; the same command with --resume goes on\n",
                 static_cast<long long>(file->count()), prompts.size(), arguments.out.c_str());
  }
  if (outcome.signal != 0) std::fprintf(stderr, "%s\n", outcome.reason().c_str());
  return outcome.exit_status();
}

}  // namespace hyperrun
