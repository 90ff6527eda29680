// The records of a run whose model has encoders: a line for each step and each evaluation, and a summary.
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

struct OmniMetrics {
  std::int64_t step = 0;            // the first is 1
  double loss = 0;                  // mean over the predicted tokens of the step
  double grad_norm = 0, lr = 0;     // of all programs together, before clipping
  std::vector<std::int64_t> items;  // items that each encoder read, in the job's order
  Nanos step_time{};                // since the end of the step before
  Nanos time{};                     // end of the step, since the Unix epoch
};

// The accuracy on held-back samples: how often the right text is the likeliest of all texts.
struct OmniEvaluation {
  std::int64_t step = 0;  // last step that the weights have learned
  std::string encoder;
  std::int64_t samples = 0, texts = 0, correct = 0;
  std::int64_t most_frequent = 0;  // samples with the most frequent text
  Nanos time{};

  double share() const {
    return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0;
  }
  // The best accuracy of a constant answer.
  double without_looking() const {
    return samples > 0 ? static_cast<double>(most_frequent) / static_cast<double>(samples) : 0;
  }
};

std::string to_json_line(const OmniMetrics& metrics);
std::string to_json_line(const OmniEvaluation& evaluation);
std::string describe(const OmniEvaluation& evaluation);  // for people, a line without its newline

struct OmniReport : ProgramsReport {
  std::string order;  // order of tasks: "static" or "dynamic"
  std::vector<double> step_seconds;
  std::vector<OmniEvaluation> evaluations;
};

std::string to_json(const OmniReport& report);
// Reads a report; nullopt: it is of another kind. Throws kMissingFile, or kSyntax if it is no report.
std::optional<OmniReport> read_omni_report(const std::filesystem::path& path);
std::string to_text(const OmniReport& report);  // for people

// The forecast of the same job on the simulated machine.
struct OmniForecast {
  std::string job;
  std::int64_t devices = 0, steps = 0;
  struct Load {  // an encoder's items for a micro-batch
    std::string encoder;
    std::int64_t least = 0, most = 0;
    double mean = 0;
  };
  std::vector<Load> loads;
  struct Run {  // a run of a program's Program
    std::string program, what;
    std::int64_t devices = 0;
    Nanos lasts{};
  };
  std::vector<Run> runs;
  struct Ordered {
    std::string order;
    Nanos step{};
    double bubble = 0;  // idle share of the time of devices with a program
  };
  std::vector<Ordered> orders;
  std::optional<StepRange> range;  // range of a step in the job's order, on a machine with a profile
};

std::string to_json(const OmniForecast& forecast);
std::string to_text(const OmniForecast& forecast);

}  // namespace hyperrun
