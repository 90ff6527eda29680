// Robustness: does the first plan stay first if the machine is not quite as its profile says? The leading
// plans are simulated again with each guess of the profile at both ends of its range, with all guesses at
// their worse and at their better ends, and with slow devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ir/figure_path.h"
#include "runtime/ir/job.h"
#include "runtime/ir/step_range.h"
#include "runtime/plan/simulated_candidate.h"

namespace hyperrun {

inline constexpr double kAsFast = 0.01;     // steps closer than this count as equal
inline constexpr double kNearly = 0.02;     // a simpler plan within this is told
inline constexpr double kSlowDevice = 1.1;  // slow-down of a slow device

inline constexpr double kDoesNotFit = std::numeric_limits<double>::infinity();

// A plan and its step times.
struct Contender {
  Strategy strategy;
  StepRange range;
  std::vector<double> steps;  // ns, by circumstance; may be kDoesNotFit
};

// A nearly as fast plan with fewer mechanisms.
struct Simpler {
  std::size_t plan = 0;
  double behind = 0;   // relative to the first's step
  std::string reason;  // "it moves no tensors beyond HBM"
};

struct Robustness {
  std::vector<std::string> circumstances;  // "device.pool.latency is 20 us"; the first is the profile
  // Plans in the order of the ranking: the fastest, and the fastest that still fits with memory guesses at
  // their worse ends.
  std::vector<Contender> plans;
  std::optional<Simpler> simpler;
  double least_hbm = 0;  // bytes of HBM for a job with worse memory guesses

  std::size_t fastest_in(std::size_t circumstance) const;
  // The largest loss against the fastest plan of a circumstance in which some plan fits.
  double worst_loss(std::size_t plan) const;
  bool fits_everywhere(std::size_t plan) const;
  // True if no plan is ever faster by more than kAsFast while some plan fits.
  bool is_always_first(std::size_t plan) const { return worst_loss(plan) <= kAsFast; }
  // Circumstances in which no plan fits.
  std::vector<std::size_t> without_room() const;
  // The first plan with the least worst loss.
  std::size_t steadiest() const;
};

struct RobustOptions {
  std::vector<FigurePath> figures;  // all guesses of the machine
  std::size_t plans = kKeptPlans;   // number of the fastest plans
  std::function<void(std::int64_t done, std::int64_t all)> progress;
};

// `leaders`: the fastest first. Refused ones are ignored.
Robustness robustness(const Job& base, const std::vector<SimulatedCandidate>& leaders,
                      const RobustOptions& options);

// The reason why `a` is simpler than `b`; empty if it is not. The first difference decides, in this order:
// offloading, axes, chunks or zero bubble, recomputation, ZeRO.
std::string simpler_because(const Strategy& a, const Strategy& b);

}  // namespace hyperrun
