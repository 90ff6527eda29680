#include "launcher/status_line.h"

#include <unistd.h>

#include <cstdio>

namespace hyperrun {

StatusLine::StatusLine(std::chrono::milliseconds between)
    : live_(isatty(STDERR_FILENO) != 0), between_(between) {}
StatusLine::~StatusLine() { clear(); }

void StatusLine::tell(const std::string& text) {
  if (!live_) return tell_now_and_then(text);
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  shown_ = true;
}

void StatusLine::tell_now_and_then(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (Clock::now() - told_ < between_) return;
  told_ = Clock::now();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void StatusLine::clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace hyperrun
