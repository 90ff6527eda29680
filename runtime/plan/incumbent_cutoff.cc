#include "runtime/plan/incumbent_cutoff.h"

#include <algorithm>
#include <limits>

namespace hyperrun {
namespace {

// How much too low the best forecasts of a space may be. It decides which strategies are forecast. Dropped
// ones count with their bounds, so no certificate depends on it.
constexpr double kTooShort = 1.1;

}  // namespace

IncumbentCutoff::IncumbentCutoff(std::span<const Space* const> spaces, std::size_t leaders)
    : leaders_(leaders) {
  for (const Space* space : spaces)
    best_.emplace_back(space).cutoff = std::numeric_limits<double>::infinity();
}

void IncumbentCutoff::add(const Strategy& strategy, double time) {
  for (Best& b : best_) {
    if (!can_express(*b.space, strategy)) continue;
    b.times.push(time);
    if (b.times.size() > leaders_) b.times.pop();
    if (b.times.size() == leaders_) b.cutoff = b.times.top();
  }
}

double IncumbentCutoff::cutoff(const Strategy& strategy) const {
  const double first = best_.front().cutoff;
  double most = first;
  for (const Best& b : best_) {
    const double cutoff = b.cutoff;  // read once, as another thread may lower it
    if (cutoff > most && can_express(*b.space, strategy)) most = cutoff;
  }
  return std::min(most, kTooShort * first);
}

}  // namespace hyperrun
