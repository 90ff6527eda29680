// Whether the first is still the first where the machine is not quite what its profile says: the plans that
// lead are simulated again with each guess of the profile at both ends of its range, with all of them at
// their worse and at their better ends, and with slow devices.
#pragma once

#include <cstddef>
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
  std::vector<Contender> plans;            // in the order of the ranking
  std::optional<Simpler> simpler;

  std::size_t fastest_in(std::size_t circumstance) const;
  // The largest share by which a plan is behind the fastest of a circumstance.
  double worst_loss(std::size_t plan) const;
  // No other plan is faster by more than kAsFast anywhere.
  bool is_always_first(std::size_t plan) const { return worst_loss(plan) <= kAsFast; }
  // The plan whose worst loss is least; of equal ones the first.
  std::size_t steadiest() const;
};

struct RobustOptions {
  std::vector<FigurePath> figures;  // all of the job's machine
  std::size_t plans = kKeptPlans;   // the fastest, as many as this
  double seconds = 12;              // of simulating, for each plan, about
  std::function<void(std::int64_t done, std::int64_t all)> progress;
};

// `leaders`: the fastest first. Those that were refused are left out.
Robustness robustness(const Job& base, const std::vector<Leader>& leaders, const RobustOptions& options);

// The reason why `a` is simpler than `b`; empty where it is not. What differs first decides: tensors beyond
// HBM, axes, stages that take turns on a device or zero bubble, recomputation, ZeRO.
std::string simpler_because(const Strategy& a, const Strategy& b);

}  // namespace hyperrun
