#include "runtime/plan/promises.h"

#include <algorithm>
#include <limits>

namespace hyperrun {
namespace {

// By how much the best forecasts of a space are taken to be too short at most. It decides what is looked at,
// never what is certified: what is left counts with its bound.
constexpr double kTooShort = 1.1;

}  // namespace

Promises::Promises(std::span<const Space* const> spaces, std::size_t leaders) : leaders_(leaders) {
  for (const Space* space : spaces)
    best_.emplace_back(space).enough = std::numeric_limits<double>::infinity();
}

void Promises::add(const Strategy& strategy, double time) {
  for (Best& b : best_) {
    if (!can_express(*b.space, strategy)) continue;
    b.times.push(time);
    if (b.times.size() > leaders_) b.times.pop();
    if (b.times.size() == leaders_) b.enough = b.times.top();
  }
}

double Promises::enough(const Strategy& strategy) const {
  const double first = best_.front().enough;
  double most = first;
  for (const Best& b : best_) {
    const double enough = b.enough;  // read once, as it falls meanwhile
    if (enough > most && can_express(*b.space, strategy)) most = enough;
  }
  return std::min(most, kTooShort * first);
}

}  // namespace hyperrun
