// Errors are part of the interface: each has a place, a stable code, a cause, a remedy (its code's, where
// none is given), and where there are some, the legal values. An Error ends the job; it is caught once, in
// main.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace hyperrun {

// Stable: a code is never renamed or given another exit status (docs/errors.md lists them).
enum class Code {
  kUsage,
  kSyntax,
  kUnknownField,
  kMissingField,
  kBadValue,
  kBadLayout,
  kDoesNotFit,
  kTooFewRanks,
  kMpi,
  kMissingFile,
  kBadCorpus,
  kBadCheckpoint,
  kBadTokenizer,
  kUnwritable,
  kBadFlash,
  kDeviceLost,
  kDeviceHung,
  kControl,
  kNotFinite,
  kNotEqual,
  kInternal,
};

// What the shell sees. Distinct for each kind of remedy.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,
  kBadJob = 3,
  kDoesNotFit = 4,
  kMachine = 5,
  kInput = 6,
  kOutput = 7,
  kDeviceLost = 8,
  kDeviceHung = 9,
  kDiverged = 10,
  kNotEqual = 11,
};

std::string_view name(Code code);            // "unknown-field"
Code code_from_name(std::string_view name);  // kInternal when unknown
ExitCode exit_code(Code code);

// Built in one expression:
//   throw Error(Code::kBadValue, "must be positive").at("job.textproto:3:5").legal("1 to 8").fix("...");
class Error : public std::exception {
 public:
  Error(Code code, std::string cause);

  Error& at(std::string place) &;
  Error& legal(std::string values) &;
  Error& fix(std::string remedy) &;
  Error&& at(std::string place) &&;
  Error&& legal(std::string values) &&;
  Error&& fix(std::string remedy) &&;

  Code code() const { return code_; }
  const std::string& place() const { return place_; }
  const std::string& cause() const { return cause_; }
  const std::string& legal() const { return legal_; }
  const std::string& remedy() const { return remedy_; }

  // Several lines: "PLACE: error[CODE]: CAUSE", then "  legal: ..." where given and "  fix: ...".
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void render();

  Code code_;
  std::string cause_, place_, legal_, remedy_, text_;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& detail);

}  // namespace hyperrun

// A bug in hyperrun itself, never a user's mistake. Always on.
#define HR_CHECK(condition, ...)                                                            \
  do {                                                                                      \
    if (!(condition)) [[unlikely]]                                                          \
      ::hyperrun::check_failed(#condition, __FILE__, __LINE__, ::std::string{__VA_ARGS__}); \
  } while (false)
