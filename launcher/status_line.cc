#include "launcher/status_line.h"

#include <unistd.h>

#include <cstdio>

namespace hyperrun {

StatusLine::StatusLine() : live_(isatty(STDERR_FILENO) != 0) {}
StatusLine::~StatusLine() { clear(); }

void StatusLine::tell(const std::string& text) {
  if (!live_) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  shown_ = true;
}

void StatusLine::clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace hyperrun
