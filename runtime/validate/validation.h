// Compares published steps with simulated ones.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/validate/published_run.h"

namespace hyperrun {

struct ValidatedRun {
  PublishedRun run;
  double simulated = 0;            // ms
  double simulated_gibibytes = 0;  // of the fullest device
  // Relative errors, with their signs.
  double error() const { return simulated / run.milliseconds - 1; }
  double memory_error() const { return simulated_gibibytes / run.gibibytes - 1; }
};

// What was measured of a run.
enum class Measure : std::uint8_t { kTime, kMemory };

// Simulates each run on the machine of the same index, with the software that it has. Throws the errors of
// compiling a run, with the run's place. `progress` is called after each run, from any thread.
std::vector<ValidatedRun> simulate_runs(const std::vector<PublishedRun>& runs,
                                        std::span<const Machine* const> machines,
                                        const std::function<void(std::size_t done)>& progress);

// The errors of the runs of one set and use that were measured. All but the bias are without signs.
struct ErrorSummary {
  std::string set;
  bool calibrates = false;
  std::size_t runs = 0;
  double mean = 0, median = 0, largest = 0, bias = 0;
};
std::vector<ErrorSummary> summaries(const std::vector<ValidatedRun>& runs, Measure of = Measure::kTime);

// A text for people: the summaries, the errors of judged runs by property, and with `each` every run.
std::string to_text(const std::vector<ValidatedRun>& runs, bool each);
// All results for programs; CSV has a line for each run.
std::string to_csv(const std::vector<ValidatedRun>& runs);
// `profile`: the machine of runs that name none.
std::string to_json(const std::vector<ValidatedRun>& runs, const std::string& profile);

}  // namespace hyperrun
