#include "runtime/report/describe_range.h"

#include <fmt/core.h>

#include <cstddef>
#include <ranges>
#include <utility>
#include <vector>

#include "runtime/report/table.h"

namespace hyperrun {
namespace {

constexpr std::size_t kMostGuesses = 3;  // limit of listed guesses

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string left_out(const std::vector<std::string>& names, const std::string& why) {
  return names.empty() ? "" : why + ": " + joined(names) + "\n";
}

Table guesses_table(const StepRange& range, const std::string& what) {
  Table table({left(what + " hangs most on the guess"), right("guessed"), right("at least"),
               right(what + " then"), right("at most"), right(what + " then")});
  for (const GuessEffect& g : range.guesses | std::views::take(kMostGuesses)) {
    if (g.swing() == Nanos(0)) break;
    table.row({g.name, g.value_words, g.low_words, to_string(g.at_low), g.high_words, to_string(g.at_high)});
  }
  return table;
}

// Lists guesses about memory that leave no room. Such guesses change no time.
std::string without_room(const StepRange& range) {
  std::string where;
  for (const GuessEffect& g : range.guesses)
    for (const auto& [fits, value] :
         {std::pair(g.fits_low, g.low_words), std::pair(g.fits_high, g.high_words)})
      if (!fits) where += (where.empty() ? "" : ", or ") + g.name + " is " + value;
  return where.empty() ? "" : "it does not fit where " + where + "\n";
}

}  // namespace

std::string describe_evidence(const StepRange& range) {
  const EvidenceCounts& c = range.counts;
  if (c.all() == 0) return "";
  return fmt::format(
      "\nof the {} figures of the profile {}, {} {} measured, {} from data sheets, {} guessed\n", c.all(),
      range.machine, c.measured, c.measured == 1 ? "is" : "are", c.data_sheet, c.guessed);
}

std::string describe_spread(const StepRange& range, const std::string& what) {
  if (range.counts.all() == 0) return "";
  std::string text;
  if (!range.guesses.empty()) {
    text += what + " is " + to_string(range.step) + ", and " + to_string(range.fastest) + " to " +
            to_string(range.slowest) +
            " where the guesses lie at the better or the worse ends of their ranges\n";
    if (range.guesses.front().swing() > Nanos(0)) text += guesses_table(range, what).str("  ");
  }
  text += without_room(range);
  return text + left_out(range.without_range, "guesses without a range in the profile, left as they are") +
         left_out(range.not_simulated, "guesses for which there was no time, left as they are");
}

std::string describe_range(const StepRange& range) {
  return describe_evidence(range) + describe_spread(range, "the step");
}

}  // namespace hyperrun
