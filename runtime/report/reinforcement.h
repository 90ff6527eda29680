// What a run that learns from rewards writes down: a line for each step, and a summary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

class OutputFile;

struct ReinforcementMetrics {
  std::int64_t step = 0;                 // the first is 1
  double reward = 0;                     // mean of the step's completions, 0 to 1
  double correct = 0;                    // share of them with the whole reward
  double length = 0;                     // tokens of a completion, mean
  std::int64_t staleness = 0;            // steps that the weights learned after those that generated
  double loss = 0, kl = 0, clipped = 0;  // of the policy: see docs/reinforcement.md
  double grad_norm = 0, lr = 0;
  Nanos step_time{};  // since the step before had been learned
  Nanos time{};       // when it was learned, since the Unix epoch
};

// On tasks that are never trained on.
struct EvaluationMetrics {
  std::int64_t step = 0;  // that the weights have learned
  double reward = 0, correct = 0;
  std::int64_t completions = 0;
  Nanos time{};
};

std::string to_json_line(const ReinforcementMetrics& metrics);
std::string to_json_line(const EvaluationMetrics& metrics);

// How long the devices of a program were in it.
struct ProgramUse {
  std::string name;
  std::int64_t devices = 0, runs = 0;
  double seconds = 0;  // all its devices together
};

struct ReinforcementReport {
  std::string job;
  std::int64_t parameters = 0, devices = 0, steps = 0, generated_tokens = 0;
  std::string clock;  // "native" or "paced"
  double dilation = 1;
  std::vector<ProgramUse> programs;
  double seconds = 0;      // from the begin of the first program to the end of the last
  double utilisation = 0;  // of that the share in which a device runs a program, mean of the devices
  // Passes in which every sequence grows by a token, and of each the share of slots that have one, mean.
  std::int64_t decode_passes = 0;
  double filled_slots = 0;
  std::int64_t learned_completions = 0, learned_tokens = 0;  // that have been trained on
  std::vector<EvaluationMetrics> evaluations;

  double per_second(std::int64_t count) const {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  }
};

std::string to_json(const ReinforcementReport& report);
// None: the file is a report of another kind. Throws kMissingFile, or kSyntax where it is no report.
std::optional<ReinforcementReport> read_reinforcement_report(const std::filesystem::path& path);
std::string to_text(const ReinforcementReport& report);  // for people

// metrics.jsonl; each line reaches the file before write returns. Throws kUnwritable.
class LineWriter {
 public:
  explicit LineWriter(const std::filesystem::path& path);
  ~LineWriter();
  void write(const std::string& line);

 private:
  std::unique_ptr<OutputFile> file_;
};

}  // namespace hyperrun
