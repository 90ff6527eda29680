#include "runtime/process/crash_trace.h"

#include <utility>

namespace hyperrun::process {

std::string CrashTrace::without(std::string_view bytes) {
  std::string kept;
  for (const char c : bytes) {
    line_ += c;
    if (c != '\n') continue;
    const std::string line = std::exchange(line_, "");
    if (!ours(line)) kept += line;
  }
  return kept;
}

std::string CrashTrace::rest() {
  const std::string line = std::exchange(line_, "");
  return ours(line) ? "" : line;
}

bool CrashTrace::ours(std::string_view line) {
  if (line.starts_with("mpirun: abort is already in progress")) return true;
  const std::size_t mark = line.find(mark_);
  if (!line.starts_with('[') || mark == std::string_view::npos || line.find(' ') < mark) return false;
  const std::string_view said = line.substr(mark + mark_.size());
  if (said.starts_with("*** Process received signal ***")) inside_ = true;
  const bool trace = inside_;
  if (said.starts_with("*** End of error message ***")) inside_ = false;
  return trace;
}

}  // namespace hyperrun::process
