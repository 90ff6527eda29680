// The settings of a configuration, each with what an import made of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun::frameworks {

// A setting as it was written: a flag of a script, or a path of keys ("training.steps") in a file.
struct Setting {
  std::string name;
  std::string value;  // several words with blanks between them; empty for a flag that stands alone
  bool has_value = false;
  std::string place;                 // "train.sh:40:5"
  std::vector<std::string> unknown;  // what only a run would know: "$3"
};

enum class Verdict : std::uint8_t {
  kTaken,     // it is in the job
  kNoMatter,  // it changes nothing that a job says
  kGap,       // the job cannot say it
};

// Finding::meaning of a setting whose value says that it has none: "null", "auto".
inline constexpr std::string_view kLeftOpen = "left open";

struct Finding {
  Setting setting;
  Verdict verdict = Verdict::kTaken;
  // The field of the job; why it is of no matter; or what the job leaves out.
  std::string meaning;
};

// Something that the configuration does not say, and what the job has for it.
struct Assumption {
  std::string field;
  std::string text;
};

}  // namespace hyperrun::frameworks
