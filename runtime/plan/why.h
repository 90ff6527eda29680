// Why the best strategy has the values that it has: what the best with each other value would take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// A value of a dimension. The sentence says what the numbers are for.
struct Verdict {
  std::string key, dimension, value, sentence;
  bool chosen = false;
  std::optional<Strategy> strategy;               // the best that is known with this value, where one fits
  double simulated = 0, forecast = 0, bound = 0;  // ns of a step, what is known best of it alone
};

// Dimension by dimension. What was simulated is told as simulated; of
// the rest it is the forecast, and said to be.
std::vector<Verdict> verdicts(const Search& search, Bytes hbm);

// Simulates what verdicts() would else know by its forecast alone. What is faster than the best leads
// afterwards. Where a search takes longer than a moment, not what its bound shows to be slower, and of what
// has transfers, which take long to plan, only what its forecast says to be faster, as far as that takes
// minutes. Of a value of which all that was tried is refused, the best of a search that takes a moment.
void simulate_alternatives(const Job& base, const Space& space, Search& search, const Progress& progress);

// Where the second loses against the first: "bubble +12.3 ms". Empty where it does not.
std::string where_it_loses(const Leader& best, const Leader& other);

}  // namespace hyperrun
