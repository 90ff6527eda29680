// Ablation of the best strategy's choices: for each dimension, what the best strategy with every other value
// would take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// The result for one value of a dimension. The sentence explains the numbers.
struct Verdict {
  std::string key, dimension, value, sentence;
  bool chosen = false;
  std::optional<Strategy> strategy;               // the best known strategy with this value, if one fits
  double simulated = 0, forecast = 0, bound = 0;  // ns of a step; only the best kind of number is set
};

// Verdicts by dimension. Simulated numbers are called simulated, forecasts are called forecasts.
std::vector<Verdict> verdicts(const Search& search, Bytes hbm);

// Simulates alternatives that verdicts() would know by forecast only. A faster one becomes the first leader.
// If searches of this job are slow, strategies with a slower bound are not simulated. Strategies with
// offloading, which take long to plan, are simulated only if their forecast is faster, and only some minutes'
// worth. If everything tried with a value was refused and searches are quick, the value gets a search of its
// own.
void simulate_alternatives(const Job& base, const Space& space, Search& search, const Progress& progress);

// The loss of `other` against `best`: "bubble +12.3 ms". Empty if nothing.
std::string where_it_loses(const SimulatedCandidate& best, const SimulatedCandidate& other);

}  // namespace hyperrun
