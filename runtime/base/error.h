// Errors are part of the interface. Each has a place, a stable code, a cause and a remedy; some have legal
// values. An Error without a remedy gets its code's. An Error ends the job; it is caught once, in main.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace hyperrun {

// The codes are stable: none is ever renamed or given another exit status (docs/errors.md lists them).
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
  kCorrupt,
  kInternal,
};

// The exit status that the shell sees. Each kind of remedy has its own.
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
  kCorrupt = 12,
};

std::string_view name(Code code);            // "unknown-field"
Code code_from_name(std::string_view name);  // kInternal when unknown
ExitCode exit_code(Code code);

// An error is built in one expression:
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

  // The message has several lines: "PLACE: error[CODE]: CAUSE", "  legal: ..." if given, "  fix: ...".
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void render();

  Code code_;
  std::string cause_, place_, legal_, remedy_, text_;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& detail);

}  // namespace hyperrun

// HR_CHECK finds bugs of hyperrun itself, never a user's mistake. It is always on.
#define HR_CHECK(condition, ...)                                                            \
  do {                                                                                      \
    if (!(condition)) [[unlikely]]                                                          \
      ::hyperrun::check_failed(#condition, __FILE__, __LINE__, ::std::string{__VA_ARGS__}); \
  } while (false)
