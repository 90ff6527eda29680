// Whether the first is still the first where the machine is not quite what its profile says: the plans that
// lead are simulated again with each guess of the profile at both ends of its range, with all of them at
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
#include "runtime/plan/leader.h"

namespace hyperrun {

inline constexpr double kAsFast = 0.01;     // steps that differ by no more are told apart by no simulation
inline constexpr double kNearly = 0.02;     // a simpler plan is told that takes so much longer at most
inline constexpr double kSlowDevice = 1.1;  // times as long as a device should compute

inline constexpr double kDoesNotFit = std::numeric_limits<double>::infinity();

// A plan, and what its step takes.
struct Contender {
  Strategy strategy;
  StepRange range;
  std::vector<double> steps;  // ns, by circumstance; kDoesNotFit
};

// A plan with fewer mechanisms that is nearly as fast.
struct Simpler {
  std::size_t plan = 0;
  double behind = 0;   // of the first's step
  std::string reason;  // "it moves no tensors beyond HBM"
};

struct Robustness {
  std::vector<std::string> circumstances;  // "device.pool.latency is 20 us"; the first: as the profile has it
  // In the order of the ranking: the fastest, and the fastest of all leaders that has room where the guesses
  // about memory are at their worse ends.
  std::vector<Contender> plans;
  std::optional<Simpler> simpler;
  double least_hbm = 0;  // bytes that a job may have of a device where the guesses about memory are worse

  std::size_t fastest_in(std::size_t circumstance) const;
  // The largest share by which a plan is behind the fastest of a circumstance in which one of them fits.
  double worst_loss(std::size_t plan) const;
  bool fits_everywhere(std::size_t plan) const;
  // No other plan is faster by more than kAsFast where one of them fits.
  bool is_always_first(std::size_t plan) const { return worst_loss(plan) <= kAsFast; }
  // Circumstances in which none of the plans fits.
  std::vector<std::size_t> without_room() const;
  // The plan whose worst loss is least; of equal ones the first.
  std::size_t steadiest() const;
};

struct RobustOptions {
  std::vector<FigurePath> figures;  // all of the job's machine
  std::size_t plans = kKeptPlans;   // the fastest, as many as this
  std::function<void(std::int64_t done, std::int64_t all)> progress;
};

// `leaders`: the fastest first. Those that were refused are left out.
Robustness robustness(const Job& base, const std::vector<Leader>& leaders, const RobustOptions& options);

// The reason why `a` is simpler than `b`; empty where it is not. What differs first decides: tensors beyond
// HBM, axes, stages that take turns on a device or zero bubble, recomputation, ZeRO.
std::string simpler_because(const Strategy& a, const Strategy& b);

}  // namespace hyperrun
