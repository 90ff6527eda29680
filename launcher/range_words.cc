#include "launcher/range_words.h"

#include <algorithm>
#include <vector>

#include "runtime/base/format.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

std::string counts_words(const StepRange& range) {
  const EvidenceCounts& c = range.counts;
  return format("of the %d figures of the profile %s, %d %s measured, %d from data sheets, %d guessed\n",
                c.all(), range.machine.c_str(), c.measured, c.measured == 1 ? "is" : "are", c.data_sheet,
                c.guessed);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string left_out(const std::vector<std::string>& names, const std::string& why) {
  return names.empty() ? "" : why + ": " + joined(names) + "\n";
}

Table guesses_table(const StepRange& range, std::size_t most) {
  Table table({left("the step hangs most on the guess"), right("guessed"), right("at least"),
               right("the step then"), right("at most"), right("the step then")});
  for (std::size_t i = 0; i < std::min(most, range.guesses.size()); ++i) {
    const GuessEffect& g = range.guesses[i];
    if (g.swing() == Nanos(0)) break;
    table.row({g.name, g.value_words, g.low_words, to_string(g.at_low), g.high_words, to_string(g.at_high)});
  }
  return table;
}

}  // namespace

std::string range_words(const StepRange& range, std::size_t most) {
  if (range.counts.all() == 0) return "";
  std::string text = "\n" + counts_words(range);
  if (!range.guesses.empty()) {
    text += "the step is " + to_string(range.step) + ", and " + to_string(range.fastest) + " to " +
            to_string(range.slowest) +
            " where the guesses lie at the better or the worse ends of their ranges\n";
    if (range.guesses.front().swing() > Nanos(0)) text += guesses_table(range, most).str("  ");
  }
  return text + left_out(range.without_range, "guesses without a range in the profile, left as they are") +
         left_out(range.not_simulated, "guesses for which there was no time, left as they are");
}

}  // namespace hyperrun
