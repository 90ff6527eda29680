#include "runtime/faults/fault_trace.h"

#include <array>
#include <cmath>

namespace hyperrun {
namespace {

// SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014): the same
// numbers with every compiler and library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U) {}

  // 0 to below 1.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace

std::vector<Fault> draw_faults(const FaultModel& spec, std::int32_t devices, std::uint64_t seed) {
  std::array<double, kModelledFaults> until{};  // sums of the rates
  double rate = 0;
  for (std::size_t k = 0; k < kModelledFaults; ++k)
    until[k] = rate += fault_rate(spec, static_cast<FaultKind>(k), devices);
  std::vector<Fault> faults;
  if (rate <= 0) return faults;
  // One step apart would make the histories of two seeds parts of each other.
  Random mix(seed);
  for (int i = 0; i < 4; ++i) mix.uniform();
  Random random(static_cast<std::uint64_t>(mix.uniform() * 0x1p53));
  for (double time = -std::log1p(-random.uniform()) / rate; time < spec.horizon;
       time -= std::log1p(-random.uniform()) / rate) {
    const double which = random.uniform() * rate;
    std::size_t kind = 0;
    while (kind + 1 < kModelledFaults && which >= until[kind]) ++kind;
    Fault fault{.time = time, .kind = static_cast<FaultKind>(kind), .place = random.uniform() * devices};
    fault.lasting = random.uniform() < spec.unit(fault.kind).lasting;
    fault.partner = random.uniform();
    faults.push_back(fault);
  }
  return faults;
}

}  // namespace hyperrun
