// The progress of a training job on the screen: one live line on a terminal, plain lines in a log.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/units.h"
#include "runtime/report/metrics.h"

namespace hyperrun {

// The times of a run: the remaining time, and the duration of the last step.
struct ProgressTime {
  std::optional<Nanos> eta, elapsed;
};

// The line's text for a step of `steps`. It is full if it fits in `width` columns. Narrower lines first lose
// words, then the least important fields. With color it has ANSI sequences, which count no columns.
std::string describe_progress(const StepMetrics& metrics, std::int64_t steps, ProgressTime time, int width,
                              bool color);

struct ProgressOptions {
  int fd = 1;
  std::int64_t steps = 0;  // number of the last step
  // If not given, they are found from fd and the environment: live on a terminal (TERM not "dumb"); color if
  // live and NO_COLOR is not set.
  std::optional<bool> live;
  std::optional<bool> color;
  Nanos live_interval{100'000'000};     // least interval between two updates of the live line
  Nanos plain_interval{5'000'000'000};  // interval between plain lines
  std::function<Nanos()> clock;         // a steady clock; empty: the host's
};

// The progress line. It is used by one thread at a time. Output that cannot be written (a closed pipe) is
// dropped: a run does not end because nobody watches.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressOptions options);
  ~ProgressLine();  // finishes
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Must be called after each step. The first and the last step are always shown.
  void update(const StepMetrics& metrics);
  // Writes a whole line (a message, a log entry) without tearing the live line, which stays below it.
  void print(std::string_view line);
  // Leaves the last step on the screen; later output starts on a line of its own.
  void finish();

 private:
  void observe(const StepMetrics& metrics, Nanos now);
  void draw(Nanos now);
  Nanos eta() const;

  ProgressOptions options_;
  std::optional<StepMetrics> latest_;
  std::optional<Nanos> drawn_at_;
  bool latest_drawn_ = false;
  bool line_open_ = false;  // the cursor stands behind a live line
  double step_nanos_ = 0;   // duration of a step, smoothed
  std::optional<Nanos> began_at_, updated_at_;
  int samples_ = 0;
};

}  // namespace hyperrun
