// The records of a run that learns from rewards: a line for each step, and a summary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/step_range.h"
#include "runtime/report/programs.h"

namespace hyperrun {

struct ReinforcementMetrics {
  std::int64_t step = 0;                 // the first is 1
  double reward = 0;                     // mean reward of the step's completions, 0 to 1
  double correct = 0;                    // share of completions with the whole reward
  double length = 0;                     // mean tokens of a completion
  std::int64_t staleness = 0;            // steps that the weights have learned since the generation
  double loss = 0, kl = 0, clipped = 0;  // figures of the policy: see docs/reinforcement.md
  double grad_norm = 0, lr = 0;
  Nanos step_time{};  // since the step before was learned
  Nanos time{};       // time at which it was learned, since the Unix epoch
};

// Metrics on tasks that are never trained on.
struct EvaluationMetrics {
  std::int64_t step = 0;  // last step that the weights have learned
  double reward = 0, correct = 0;
  std::int64_t completions = 0;
  Nanos time{};
};

std::string to_json_line(const ReinforcementMetrics& metrics);
std::string to_json_line(const EvaluationMetrics& metrics);

struct ReinforcementReport : ProgramsReport {
  std::int64_t generated_tokens = 0;
  // Passes in which every sequence grows by a token, and the mean share of slots with a sequence.
  std::int64_t decode_passes = 0;
  double filled_slots = 0;
  std::int64_t learned_completions = 0, learned_tokens = 0;  // completions and tokens trained on
  std::vector<EvaluationMetrics> evaluations;
  std::optional<StepRange> range;  // range of a simulated step, on a machine with a profile
};

std::string to_json(const ReinforcementReport& report);
// Reads a report; nullopt: it is of another kind. Throws kMissingFile, or kSyntax if it is no report.
std::optional<ReinforcementReport> read_reinforcement_report(const std::filesystem::path& path);
std::string to_text(const ReinforcementReport& report);  // for people

}  // namespace hyperrun
