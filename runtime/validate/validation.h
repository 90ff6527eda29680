// Published steps beside what the simulator says of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/validate/published_run.h"

namespace hyperrun {

struct ValidatedRun {
  PublishedRun run;
  double simulated = 0;                                              // ms
  double error() const { return simulated / run.milliseconds - 1; }  // of the simulation, with its sign
};

// Throws what compiling a run throws, with the run's place. `progress`: after each, from any thread.
std::vector<ValidatedRun> simulate_runs(const std::vector<PublishedRun>& runs, const Machine& machine,
                                        const std::function<void(std::size_t done)>& progress);

// Of runs of one set and use; errors without their signs, but for the bias.
struct ErrorSummary {
  std::string set;
  bool calibrates = false;
  std::size_t runs = 0;
  double mean = 0, median = 0, largest = 0, bias = 0;
};
std::vector<ErrorSummary> summaries(const std::vector<ValidatedRun>& runs);

// For people: the summaries, errors of judged runs by their dimensions, and with `each` every run.
std::string to_text(const std::vector<ValidatedRun>& runs, bool each);
// For programs: a line a run; everything.
std::string to_csv(const std::vector<ValidatedRun>& runs);
std::string to_json(const std::vector<ValidatedRun>& runs, const Machine& machine);

}  // namespace hyperrun
