#include "runtime/base/error.h"

#include <array>
#include <utility>

namespace hyperrun {
namespace {

struct CodeRow {
  Code code;
  std::string_view name;
  ExitCode exit;
};

constexpr std::array kCodes{
    CodeRow{Code::kUsage, "usage", ExitCode::kUsage},
    CodeRow{Code::kSyntax, "syntax", ExitCode::kBadJob},
    CodeRow{Code::kUnknownField, "unknown-field", ExitCode::kBadJob},
    CodeRow{Code::kMissingField, "missing-field", ExitCode::kBadJob},
    CodeRow{Code::kBadValue, "bad-value", ExitCode::kBadJob},
    CodeRow{Code::kBadLayout, "bad-layout", ExitCode::kBadJob},
    CodeRow{Code::kDoesNotFit, "does-not-fit", ExitCode::kDoesNotFit},
    CodeRow{Code::kTooFewRanks, "too-few-ranks", ExitCode::kMachine},
    CodeRow{Code::kMpi, "mpi", ExitCode::kMachine},
    CodeRow{Code::kMissingFile, "missing-file", ExitCode::kInput},
    CodeRow{Code::kBadCorpus, "bad-corpus", ExitCode::kInput},
    CodeRow{Code::kBadCheckpoint, "bad-checkpoint", ExitCode::kInput},
    CodeRow{Code::kUnwritable, "unwritable", ExitCode::kOutput},
    CodeRow{Code::kDeviceLost, "device-lost", ExitCode::kDeviceLost},
    CodeRow{Code::kDeviceHung, "device-hung", ExitCode::kDeviceHung},
    CodeRow{Code::kControl, "control", ExitCode::kMachine},
    CodeRow{Code::kNotFinite, "not-finite", ExitCode::kDiverged},
    CodeRow{Code::kInternal, "internal", ExitCode::kInternal},
};

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

Error::Error(Code code, std::string cause) : code_(code), cause_(std::move(cause)) { render(); }

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
  throw Error(Code::kInternal, cause).at(std::string(file) + ":" + std::to_string(line));
}

}  // namespace hyperrun
