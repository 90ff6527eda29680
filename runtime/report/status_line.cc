#include "runtime/report/status_line.h"

#include <unistd.h>

#include <cstdio>

namespace hyperrun {

StatusLine::StatusLine(std::chrono::milliseconds between)
    : live_(isatty(STDERR_FILENO) != 0), between_(between) {}
StatusLine::~StatusLine() { clear(); }

void StatusLine::tell(const std::string& text) {
  const std::lock_guard lock(mutex_);
  text_ = text;
  if (live_) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    return;
  }
  tell_now_and_then();
  if (!repeating_.joinable() && between_.count() > 0)
    repeating_ = std::jthread([this](const std::stop_token& stop) { repeat(stop); });
}

void StatusLine::tell_now_and_then() {
  const Clock::time_point now = Clock::now();
  if (text_.empty() || now - told_ < between_) return;
  told_ = now;
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(now - begin_);
  std::fprintf(stderr, "%s (%lld s)\n", text_.c_str(), static_cast<long long>(since.count()));
}

void StatusLine::repeat(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_until(lock, stop, told_ + between_, [] { return false; });
    if (stop.stop_requested()) return;
    tell_now_and_then();
    if (text_.empty()) told_ = Clock::now();
  }
}

void StatusLine::clear() {
  const std::lock_guard lock(mutex_);
  if (live_ && !text_.empty()) std::fprintf(stderr, "\r\033[K");
  text_.clear();
}

}  // namespace hyperrun
