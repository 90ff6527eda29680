// How far a simulated step can be trusted: the evidence for the machine's figures, and how the step changes
// with the guesses among them.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

// The number of a profile's figures with each kind of evidence.
struct EvidenceCounts {
  int measured = 0, data_sheet = 0, guessed = 0;
  int all() const { return measured + data_sheet + guessed; }
  bool operator==(const EvidenceCounts&) const = default;
};

// The effect of one guessed figure on the step; all other figures are the profile's.
struct GuessEffect {
  std::string path, name;               // the figure's FigurePath
  double value = 0, low = 0, high = 0;  // in the figure's base unit
  std::string value_words, low_words, high_words;
  std::string range_source;
  Nanos at_low{}, at_high{};               // step time with the figure at either end of its range
  bool fits_low = true, fits_high = true;  // the job fits into memory with the figure at that end

  Nanos swing() const { return at_low < at_high ? at_high - at_low : at_low - at_high; }
  bool operator==(const GuessEffect&) const = default;
};

struct StepRange {
  std::string machine;
  EvidenceCounts counts;
  Nanos step{};                // step time with the profile's figures
  Nanos fastest{}, slowest{};  // step time with every guess at the better, or worse, end of its range
  bool fits_fastest = true, fits_slowest = true;
  std::vector<GuessEffect> guesses;  // the largest swing first; those without an effect last
  std::vector<std::string>
      without_range;  // guesses without a range in the profile, unchanged in all simulations
  std::vector<std::string> not_simulated;  // guesses that time did not suffice for, unchanged as well

  bool operator==(const StepRange&) const = default;
};

}  // namespace hyperrun
