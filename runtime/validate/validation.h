// Compares published steps with simulated ones.
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
  double error() const { return simulated / run.milliseconds - 1; }  // relative error, with its sign
};

// Simulates all runs. Throws the errors of compiling a run, with the run's place. `progress` is called after
// each run, from any thread.
std::vector<ValidatedRun> simulate_runs(const std::vector<PublishedRun>& runs, const Machine& machine,
                                        const std::function<void(std::size_t done)>& progress);

// The errors of the runs of one set and use. All but the bias are without signs.
struct ErrorSummary {
  std::string set;
  bool calibrates = false;
  std::size_t runs = 0;
  double mean = 0, median = 0, largest = 0, bias = 0;
};
std::vector<ErrorSummary> summaries(const std::vector<ValidatedRun>& runs);

// A text for people: the summaries, the errors of judged runs by property, and with `each` every run.
std::string to_text(const std::vector<ValidatedRun>& runs, bool each);
// All results for programs; CSV has a line for each run.
std::string to_csv(const std::vector<ValidatedRun>& runs);
std::string to_json(const std::vector<ValidatedRun>& runs, const Machine& machine);

}  // namespace hyperrun
