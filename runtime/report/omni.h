// What a run whose model has encoders writes down: a line for each step and each evaluation, and a summary.
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
  double loss = 0;                  // mean of the tokens that the step was to tell
  double grad_norm = 0, lr = 0;     // of all programs together, before each is clipped
  std::vector<std::int64_t> items;  // that encoders read, in the job's order
  Nanos step_time{};                // since the step before had ended
  Nanos time{};                     // when it ended, since the Unix epoch
};

// Of samples that are never trained on: how often the right text is the likeliest of all that there are.
struct OmniEvaluation {
  std::int64_t step = 0;  // that the weights have learned
  std::string encoder;
  std::int64_t samples = 0, texts = 0, correct = 0;
  std::int64_t most_frequent = 0;  // samples that have the text that most have
  Nanos time{};

  double share() const {
    return samples > 0 ? static_cast<double>(correct) / static_cast<double>(samples) : 0;
  }
  // What always the same answer would come to, at best.
  double without_looking() const {
    return samples > 0 ? static_cast<double>(most_frequent) / static_cast<double>(samples) : 0;
  }
};

std::string to_json_line(const OmniMetrics& metrics);
std::string to_json_line(const OmniEvaluation& evaluation);
std::string words(const OmniEvaluation& evaluation);  // for people, a line without its end

struct OmniReport : ProgramsReport {
  std::string order;  // of tasks: "static" or "dynamic"
  std::vector<double> step_seconds;
  std::vector<OmniEvaluation> evaluations;
};

std::string to_json(const OmniReport& report);
// None: the file is a report of another kind. Throws kMissingFile, or kSyntax where it is no report.
std::optional<OmniReport> read_omni_report(const std::filesystem::path& path);
std::string to_text(const OmniReport& report);  // for people

// The same job on the simulated machine.
struct OmniForecast {
  std::string job;
  std::int64_t devices = 0, steps = 0;
  struct Load {  // items of an encoder for a micro-batch
    std::string encoder;
    std::int64_t least = 0, most = 0;
    double mean = 0;
  };
  std::vector<Load> loads;
  struct Run {  // of a program's Program
    std::string program, what;
    std::int64_t devices = 0;
    Nanos lasts{};
  };
  std::vector<Run> runs;
  struct Ordered {
    std::string order;
    Nanos step{};
    double bubble = 0;  // share of the time of devices that have a program in which they do nothing
  };
  std::vector<Ordered> orders;
  std::optional<StepRange> range;  // of a step in the job's order, on a machine with a profile
};

std::string to_json(const OmniForecast& forecast);
std::string to_text(const OmniForecast& forecast);

}  // namespace hyperrun
