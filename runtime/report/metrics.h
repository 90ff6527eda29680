// metrics.jsonl: one line for each training step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

class OutputFile;

struct StepMetrics {
  std::int64_t step = 0;  // the first step of a training is 1
  double loss = 0;
  double grad_norm = 0;  // before clipping
  double lr = 0;
  std::int64_t tokens = 0;  // tokens of this step, all devices together
  double tokens_per_second = 0;
  Nanos step_time{};
  Bytes hbm_peak{};                  // the largest peak of any device
  Bytes hbm_budget{};                // budget of one device
  double exposed_communication = 0;  // share of the step in which only communication ran, 0 to 1
  Nanos time{};                      // end of the step, since the Unix epoch

  bool operator==(const StepMetrics&) const = default;
};

// One line without its newline. Numbers read back exactly. A number that is not finite is null, and
// "not_finite" gives its value.
std::string to_json_line(const StepMetrics& metrics);

// metrics.jsonl, of any kind of run. Each line reaches the file before write returns, so a killed run keeps
// every step it has done. An existing file is continued; a torn last line is cut off first. Throws
// kUnwritable.
class MetricsWriter {
 public:
  explicit MetricsWriter(const std::filesystem::path& path);
  ~MetricsWriter();
  void write(const std::string& json_line);

 private:
  std::unique_ptr<OutputFile> file_;
};

// Reads the metrics, in order of steps. A step that was repeated after a restart is there once, in its last
// version. A torn last line is left out. Throws kMissingFile, or kSyntax at a line that is no such object.
std::vector<StepMetrics> read_metrics(const std::filesystem::path& path);

}  // namespace hyperrun
