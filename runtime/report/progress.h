// What a user sees while a job trains: one live line on a terminal, plain lines in a log.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/units.h"
#include "runtime/report/metrics.h"

namespace hyperrun {

// What the clock says of a run: how long it still takes, of the last step how long it has taken.
struct ProgressTime {
  std::optional<Nanos> eta, elapsed;
};

// The line's text for a step of `steps`: full where it fits in `width` columns; narrower ones first lose
// words, then the fields that matter least. With color, ANSI sequences (no columns of their own).
std::string progress_text(const StepMetrics& metrics, std::int64_t steps, ProgressTime time, int width,
                          bool color);

struct ProgressOptions {
  int fd = 1;
  std::int64_t steps = 0;  // number of the last step
  // Found from fd and the environment if not given: live on a terminal (TERM not "dumb"); color if live
  // and NO_COLOR is not set.
  std::optional<bool> live;
  std::optional<bool> color;
  Nanos live_interval{100'000'000};     // at most so often is the live line redrawn
  Nanos plain_interval{5'000'000'000};  // so often a plain line is written
  std::function<Nanos()> clock;         // steady; the host's if not given
};

// Not for several threads at once. Output that cannot be written (a closed pipe) is dropped: a run does
// not end because nobody watches.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressOptions options);
  ~ProgressLine();  // finishes
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // After each step. The first and the last step are always shown.
  void update(const StepMetrics& metrics);
  // Writes a whole line (a message, a log entry) without tearing the live line, which stays below it.
  void print(std::string_view line);
  // The last step stays on the screen; later output starts on a line of its own.
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
  double step_nanos_ = 0;   // of a step, smoothed
  std::optional<Nanos> began_at_, updated_at_;
  int samples_ = 0;
};

}  // namespace hyperrun
