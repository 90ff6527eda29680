#include "runtime/spec/job_reader.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "runtime/spec/faults_reader.h"
#include "runtime/spec/job_check.h"
#include "runtime/spec/job_check_faults.h"
#include "runtime/spec/job_check_programs.h"
#include "runtime/spec/job_fields.h"
#include "runtime/spec/job_fill.h"
#include "runtime/spec/job_message.h"
#include "runtime/spec/model_file.h"
#include "runtime/spec/profile_reader.h"
#include "runtime/spec/software_reader.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestJob = 1 << 20;
constexpr std::size_t kMostShown = 20;

}  // namespace

std::string read_job_file(const std::string& path) {
  auto missing = [&](const std::string& cause) {
    const std::string place = path.empty() ? "\"\"" : path;
    return Error(Code::kMissingFile, cause).at(place).legal("a readable job file").fix("check the path");
  };
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw missing("the job is a directory");
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw missing(std::string("the job cannot be read: ") + std::strerror(errno));
  std::string content;
  std::array<char, 65536> block{};
  while (content.size() <= kLargestJob) {
    std::size_t n = std::fread(block.data(), 1, block.size(), file.get());
    if (n == 0) break;
    content.append(block.data(), n);
  }
  if (std::ferror(file.get()) != 0)
    throw missing(std::string("the job cannot be read: ") + std::strerror(errno));
  return content;
}

// Loads the software profile of a job that has a machine's profile.
void fill_software(LoadedJob& loaded) {
  SupernodeSpec& spec = loaded.job.supernode;
  if (spec.software.empty()) return;
  if (spec.profile.empty())
    throw JobError({Error(Code::kBadValue, "a flat machine runs no software")
                        .at(loaded.source.place("supernode.software"))
                        .legal("a software profile beside a profile")
                        .fix("name the machine: profile: \"b200\"")});
  try {
    spec.machine->software = load_software(spec.software, loaded.source.path);
  } catch (Error& e) {
    if (e.code() == Code::kMissingFile) e.at(loaded.source.place("supernode.software"));
    throw;
  }
  if (spec.machine->hbm_of_jobs() < 1)
    throw JobError(
        {Error(Code::kBadValue, "the \"reserve\" of this software leaves nothing of the HBM to a job")
             .at(loaded.source.place("supernode.software"))
             .legal("a machine of more HBM, or software that takes less")
             .fix("give what driver and runtime take of this machine's HBM")});
  if (!is_built_in_software(spec.software)) spec.software = resolve_input(spec.software, loaded.source.path);
}

// Loads the profile that replaces the job's rates.
void fill_machine(LoadedJob& loaded) {
  SupernodeSpec& spec = loaded.job.supernode;
  if (spec.profile.empty()) return fill_software(loaded);
  for (const char* rate :
       {"cube_flops", "vector_flops", "hbm_bandwidth", "link_bandwidth", "link_latency", "launch_latency",
        "pool_bandwidth", "pool_latency", "flash_bandwidth", "flash_latency"})
    if (const std::string field = std::string("supernode.") + rate; loaded.source.has(field))
      throw JobError({Error(Code::kBadValue, std::string("\"") + rate + "\" is what the profile says")
                          .at(loaded.source.place(field))
                          .legal("a profile, or rates of a flat machine")
                          .fix("leave it out, or change it in a copy of the profile")});
  try {
    spec.machine = load_profile(spec.profile, loaded.source.path);
  } catch (Error& e) {
    if (e.code() == Code::kMissingFile) e.at(loaded.source.place("supernode.profile"));
    throw;
  }
  // The path becomes absolute, because the resolved job is read again from other directories.
  if (!is_built_in(spec.profile)) spec.profile = resolve_input(spec.profile, loaded.source.path);
  fill_software(loaded);
  if (!loaded.source.has("supernode.hbm"))
    spec.hbm = Bytes(static_cast<std::int64_t>(spec.machine->hbm_of_jobs()));
  const auto all_devices_have = [&](const Storage& s) {
    return Bytes(static_cast<std::int64_t>(s.capacity.value) * spec.devices);
  };
  if (!loaded.source.has("supernode.pool")) spec.pool = all_devices_have(spec.machine->pool);
  if (!loaded.source.has("supernode.flash")) spec.flash = all_devices_have(spec.machine->flash);
}

std::string resolve_input(const std::string& input, const std::string& job_path) {
  if (input.empty()) return input;
  std::error_code ignored;
  fs::path beside = fs::absolute(fs::path(job_path).parent_path() / input);
  fs::path here = fs::absolute(input);
  bool only_here = !fs::exists(beside, ignored) && fs::exists(here, ignored);
  return (only_here ? here : beside).lexically_normal().string();
}

void throw_if_any(std::vector<Error> errors) {
  if (!errors.empty()) throw JobError(std::move(errors));
}

namespace {

void check_input(const LoadedJob& loaded, const std::string& input, const char* field, bool directory_is_fine,
                 std::vector<Error>& errors) {
  if (input.empty()) return;
  std::error_code ignored;
  auto missing = [&](const std::string& cause) {
    errors.push_back(
        Error(Code::kMissingFile, cause)
            .at(loaded.source.place(field))
            .legal(directory_is_fine ? "a file or directory that can be read" : "a file that can be read")
            .fix("correct the path; one that is not absolute is looked up beside the job, then in the "
                 "working directory"));
  };
  if (!fs::exists(input, ignored)) return missing("there is no " + input);
  if (fs::is_directory(input, ignored) && !directory_is_fine) return missing(input + " is a directory");
  if (::access(input.c_str(), R_OK) != 0) missing(input + " cannot be read: " + std::strerror(errno));
}

}  // namespace

JobError::JobError(std::vector<Error> all) : Error(all.at(0)), all_(std::move(all)) {
  for (std::size_t i = 0; i < all_.size() && i < kMostShown; ++i)
    text_ += (i == 0 ? "" : "\n") + std::string(all_[i].what());
  if (all_.size() > kMostShown) text_ += fmt::format("\nand {} more", all_.size() - kMostShown);
}

void refuse_programs(const LoadedJob& loaded) {
  if (loaded.job.programs.empty()) return;
  throw Error(Code::kBadValue, "the job has several programs, and this command takes one")
      .at(loaded.source.place("programs"))
      .legal(
          "a job without programs; \"hyperrun JOB\", \"hyperrun check\" and \"hyperrun sim\" take one with "
          "them")
      .fix("make a job of the program that you mean");
}

void refuse_uneven_layers(const LoadedJob& loaded) {
  const ModelSpec& m = loaded.job.model;
  bool windows = false;
  for (std::int32_t l = 1; l < m.layers; ++l) windows = windows || m.window_of(l) != m.window_of(0);
  if (!windows && m.experts.dense.empty()) return;
  const std::string field = windows ? "model.window_layers" : "model.experts.dense";
  throw Error(Code::kBadValue,
              windows
                  ? "some layers have a window and others have none; the planner takes layers that are alike"
                  : "layers without experts lie among the others; the planner takes them in front only")
      .at(loaded.source.place(field))
      .legal(windows ? "a window in all layers, or in none" : "dense_layers in place of dense")
      .fix("plan a model that is like it; \"hyperrun sim\" takes this one with a layout of yours");
}

namespace {

bool runs(JobUse use) { return use != JobUse::kToBeForeseen && use != JobUse::kToBePlanned; }

bool takes_programs(JobUse use) { return use == JobUse::kOfPrograms || use == JobUse::kToBeForeseen; }

}  // namespace

LoadedJob parse_job(std::string_view content, const std::string& path, JobUse use) {
  if (content.size() > kLargestJob)
    throw Error(Code::kSyntax, "this is no job: it is larger than 1 MiB")
        .at(path)
        .legal("a text or binary job")
        .fix("give the job's own file");
  if (content.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw Error(Code::kSyntax, "the job is empty")
        .at(path)
        .legal("a text or binary job")
        .fix("examples/quickstart.textproto is one to start from");
  LoadedJob loaded;
  loaded.source.path = path;
  proto::Job message;
  throw_if_any(is_binary_job(content) ? parse_binary_job(content, message, loaded.source)
                                      : parse_text(content, message, loaded.source));
  if (message.model().has_from()) take_model_file(message, loaded.source);
  std::vector<Error> errors;
  JobFiller filler(message, "", loaded.source, errors, runs(use));
  fields(filler, loaded.job);
  throw_if_any(std::move(errors));
  if (!takes_programs(use)) refuse_programs(loaded);
  fill_machine(loaded);
  throw_if_any(fill_defaults(loaded.job, loaded.source));
  throw_if_any(fill_programs(loaded.job, loaded.source));
  throw_if_any(
      check_job(loaded.job, loaded.source, loaded.job.programs.empty() ? use : JobUse::kToBePlanned));
  throw_if_any(check_programs(loaded.job, loaded.source));
  DataSpec& data = loaded.job.data;
  for (std::string* input :
       {&data.corpus, &data.tokenizer, &data.tasks, &data.samples, &loaded.job.run.resume})
    *input = resolve_input(*input, path);
  if (std::string& model = loaded.job.run.chaos.model; !is_built_in_faults(model))
    model = resolve_input(model, path);
  return loaded;
}

LoadedJob load_job(const std::string& path, JobUse use) { return parse_job(read_job_file(path), path, use); }

Job read_job(const std::string& path) { return load_job(path).job; }

void check_inputs(const LoadedJob& loaded) {
  std::vector<Error> errors = check_faults(loaded.job, loaded.source);
  check_input(loaded, loaded.job.data.corpus, "data.corpus", true, errors);
  check_input(loaded, loaded.job.data.tokenizer, "data.tokenizer", false, errors);
  check_input(loaded, loaded.job.data.tasks, "data.tasks", false, errors);
  check_input(loaded, loaded.job.data.samples, "data.samples", false, errors);
  check_input(loaded, loaded.job.run.resume, "run.resume", true, errors);
  throw_if_any(std::move(errors));
}

}  // namespace hyperrun
