// How far a simulated step can be trusted: what is known of the machine, and what the step is where the
// guesses among its figures are others.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

// Figures of a profile, by how each is known.
struct EvidenceCounts {
  int measured = 0, data_sheet = 0, guessed = 0;
  int all() const { return measured + data_sheet + guessed; }
  bool operator==(const EvidenceCounts&) const = default;
};

// One guessed figure, all others as the profile has them.
struct GuessEffect {
  std::string path, name;               // as in FigurePath
  double value = 0, low = 0, high = 0;  // in its base unit
  std::string value_words, low_words, high_words;
  std::string range_source;
  Nanos at_low{}, at_high{};               // of a step
  bool fits_low = true, fits_high = true;  // what the job takes of memory has room there

  Nanos swing() const { return at_low < at_high ? at_high - at_low : at_low - at_high; }
  bool operator==(const GuessEffect&) const = default;
};

struct StepRange {
  std::string machine;
  EvidenceCounts counts;
  Nanos step{};                // as the profile has it
  Nanos fastest{}, slowest{};  // every guess at the end of its range that is better, or worse, for this step
  bool fits_fastest = true, fits_slowest = true;
  std::vector<GuessEffect> guesses;        // the largest swing first; those without an effect last
  std::vector<std::string> without_range;  // guesses whose range the profile does not say: left as they are
  std::vector<std::string> not_simulated;  // guesses for which there was no time: left as they are

  bool operator==(const StepRange&) const = default;
};

}  // namespace hyperrun
