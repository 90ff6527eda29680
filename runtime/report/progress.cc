#include "runtime/report/progress.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <utility>

namespace hyperrun {
namespace {

constexpr int kUnknownWidth = 80;
constexpr int kLogWidth = std::numeric_limits<int>::max();  // a log is as wide as its lines
constexpr std::string_view kClearLine = "\r\x1b[K";

Nanos steady_now() {
  return Nanos(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_terminal(int fd) { return ::isatty(fd) == 1 && environment("TERM") != "dumb"; }

// The terminal's width less one column: a terminal whose last column is filled may wrap.
int terminal_width(int fd) {
  winsize size{};
  bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : kUnknownWidth) - 1;
}

// Writes in one call if possible, so that the terminal never shows half a line.
void put(int fd, std::string_view data) {
  while (!data.empty()) {
    auto n = ::write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      if (::poll(&writable, 1, 1000) > 0) continue;
    }
    if (n < 0) return;
    data.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

ProgressLine::ProgressLine(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.live) options_.live = is_terminal(options_.fd);
  if (!options_.color) options_.color = *options_.live && environment("NO_COLOR").empty();
  if (!options_.clock) options_.clock = steady_now;
}

ProgressLine::~ProgressLine() { finish(); }

void ProgressLine::update(const StepMetrics& metrics) {
  Nanos now = options_.clock();
  observe(metrics, now);
  latest_ = metrics;
  latest_drawn_ = false;
  Nanos interval = *options_.live ? options_.live_interval : options_.plain_interval;
  bool last = metrics.step >= options_.steps;
  if (!drawn_at_ || last || now - *drawn_at_ >= interval) draw(now);
}

// Updates the smoothed time of a step. It is taken from one update to the next: data, checkpoints and stalls
// count too. Recent steps weigh more, over about twenty of them.
void ProgressLine::observe(const StepMetrics& metrics, Nanos now) {
  constexpr double kRecent = 0.05;
  Nanos took = updated_at_ ? now - *updated_at_ : metrics.step_time;
  bool first_interval = samples_ <= 1;  // the first step has warm-up in it and counts only until the second
  double weight = first_interval ? 1.0 : std::max(kRecent, 1.0 / samples_);
  step_nanos_ += weight * (static_cast<double>(took.value) - step_nanos_);
  ++samples_;
  if (!began_at_) began_at_ = now - metrics.step_time;
  updated_at_ = now;
}

Nanos ProgressLine::eta() const {
  auto left = static_cast<double>(std::max<std::int64_t>(options_.steps - latest_->step, 0));
  return Nanos(static_cast<std::int64_t>(left * step_nanos_));
}

void ProgressLine::draw(Nanos now) {
  int width = *options_.live ? terminal_width(options_.fd) : kLogWidth;
  const ProgressTime time{eta(), *updated_at_ - *began_at_};
  std::string text = describe_progress(*latest_, options_.steps, time, width, *options_.color);
  // The new text overwrites the old one, and only the rest of that is cleared: nothing blinks.
  put(options_.fd, *options_.live ? '\r' + text + "\x1b[K" : text + '\n');
  line_open_ = *options_.live;
  latest_drawn_ = true;
  drawn_at_ = now;
}

void ProgressLine::print(std::string_view line) {
  bool redraw = line_open_;
  std::string text = redraw ? std::string(kClearLine) : "";
  put(options_.fd, text + std::string(line) + '\n');
  if (redraw) draw(*drawn_at_);
}

void ProgressLine::finish() {
  if (latest_ && !latest_drawn_) draw(options_.clock());
  if (line_open_) put(options_.fd, "\n");
  line_open_ = false;
}

}  // namespace hyperrun
