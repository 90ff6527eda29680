#include "runtime/base/error.h"

#include <array>
#include <utility>

namespace hyperrun {
namespace {

struct CodeRow {
  Code code;
  std::string_view name;
  ExitCode exit;
  std::string_view fix;  // the remedy of errors that have none of their own
};

constexpr std::array kCodes{
    CodeRow{Code::kUsage, "usage", ExitCode::kUsage, "hyperrun --help shows commands, options and examples"},
    CodeRow{Code::kSyntax, "syntax", ExitCode::kBadJob, "docs/job.md explains the form of a job"},
    CodeRow{Code::kUnknownField, "unknown-field", ExitCode::kBadJob, "docs/job.md lists every field"},
    CodeRow{Code::kMissingField, "missing-field", ExitCode::kBadJob,
            "add it; docs/job.md says what it means"},
    CodeRow{Code::kBadValue, "bad-value", ExitCode::kBadJob,
            "choose a legal value; docs/job.md explains each field"},
    CodeRow{Code::kBadLayout, "bad-layout", ExitCode::kBadJob,
            "change the mesh, the presets or the rules; docs/parallel.md explains them"},
    CodeRow{
        Code::kDoesNotFit, "does-not-fit", ExitCode::kDoesNotFit,
        "raise the budget, use more devices, or split or recompute more; docs/parallel.md says what helps"},
    CodeRow{Code::kTooFewRanks, "too-few-ranks", ExitCode::kMachine,
            "start as many ranks as the job has devices"},
    CodeRow{Code::kMpi, "mpi", ExitCode::kMachine, "see what mpirun said; docs/hosts.md lists what it needs"},
    CodeRow{Code::kMissingFile, "missing-file", ExitCode::kInput, "correct the path"},
    CodeRow{Code::kBadCorpus, "bad-corpus", ExitCode::kInput,
            "give a longer text in UTF-8, or a directory of such .txt files"},
    CodeRow{Code::kBadCheckpoint, "bad-checkpoint", ExitCode::kInput,
            "take another checkpoint, or a job whose model is that of the checkpoint"},
    CodeRow{Code::kBadTokenizer, "bad-tokenizer", ExitCode::kInput,
            "give a tokenizer.json as docs/checkpoints.md says, or leave data.tokenizer out: one is trained "
            "then"},
    CodeRow{Code::kUnwritable, "unwritable", ExitCode::kOutput,
            "free space, grant write permission, or choose another place"},
    CodeRow{Code::kBadFlash, "bad-flash", ExitCode::kMachine,
            "look at that disk: choose a run.directory on another one"},
    CodeRow{Code::kDeviceLost, "device-lost", ExitCode::kDeviceLost,
            "its host's log may say why it ended (out of memory is common)"},
    CodeRow{Code::kDeviceHung, "device-hung", ExitCode::kDeviceHung, "on a busy host raise run.heartbeat"},
    CodeRow{Code::kControl, "control", ExitCode::kMachine,
            "see that all processes are of one version, and that the hosts reach each other (docs/hosts.md)"},
    CodeRow{Code::kNotFinite, "not-finite", ExitCode::kDiverged,
            "lower training.lr, lengthen training.warmup_steps or lower training.clip_norm"},
    CodeRow{Code::kNotEqual, "not-equal", ExitCode::kNotEqual,
            "report it, with this message and the job; another layout may be right"},
    CodeRow{Code::kCorrupt, "corrupt", ExitCode::kCorrupt,
            "take that device's host out of service and test its memory and its network; docs/faults.md says "
            "what is found"},
    CodeRow{Code::kInternal, "internal", ExitCode::kInternal, "report it, with this message and the job"},
};

// The path relative to the source tree, whatever path the compiler was given.
std::string in_tree(std::string_view path) {
  constexpr std::string_view kOwn = "runtime/base/error.cc", kGiven = __FILE__;
  static_assert(kGiven.ends_with(kOwn));
  constexpr std::string_view kTree = kGiven.substr(0, kGiven.size() - kOwn.size());
  if (path.starts_with(kTree)) path.remove_prefix(kTree.size());
  return std::string(path);
}

const CodeRow& row(Code code) {
  for (const CodeRow& r : kCodes)
    if (r.code == code) return r;
  return kCodes.back();
}

}  // namespace

std::string_view name(Code code) { return row(code).name; }

Code code_from_name(std::string_view name) {
  for (const CodeRow& r : kCodes)
    if (r.name == name) return r.code;
  return Code::kInternal;
}

ExitCode exit_code(Code code) { return row(code).exit; }

Error::Error(Code code, std::string cause) : code_(code), cause_(std::move(cause)), remedy_(row(code).fix) {
  render();
}

Error& Error::at(std::string place) & {
  place_ = std::move(place);
  render();
  return *this;
}
Error& Error::legal(std::string values) & {
  legal_ = std::move(values);
  render();
  return *this;
}
Error& Error::fix(std::string remedy) & {
  remedy_ = std::move(remedy);
  render();
  return *this;
}
Error&& Error::at(std::string place) && { return std::move(static_cast<Error&>(*this).at(std::move(place))); }
Error&& Error::legal(std::string values) && { return std::move(legal(std::move(values))); }
Error&& Error::fix(std::string remedy) && { return std::move(fix(std::move(remedy))); }

void Error::render() {
  text_.clear();
  if (!place_.empty()) text_ += place_ + ": ";
  text_ += "error[" + std::string(name(code_)) + "]: " + cause_;
  if (!legal_.empty()) text_ += "\n  legal: " + legal_;
  if (!remedy_.empty()) text_ += "\n  fix: " + remedy_;
}

void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  std::string cause = std::string("this is a bug in hyperrun: ") + condition + " does not hold";
  if (!detail.empty()) cause += " (" + detail + ")";
  throw Error(Code::kInternal, cause).at(in_tree(file) + ":" + std::to_string(line));
}

}  // namespace hyperrun
