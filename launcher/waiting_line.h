#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace hyperrun {

// For those who wait: on a terminal one line of standard error that is written again and again, and is gone
// in the end.
class WaitingLine {
 public:
  WaitingLine() = default;
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;
  ~WaitingLine() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

  void show(const std::string& text) {
    if (isatty(STDERR_FILENO) == 0) return;
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    shown_ = true;
  }

 private:
  bool shown_ = false;
};

}  // namespace hyperrun
