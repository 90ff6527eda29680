#pragma once

#include <atomic>
#include <string>

namespace hyperrun {

// What a command is at, for those who wait: one line of standard error that is written again and again; on a
// terminal only. It is cleared at the end, so that results stand alone.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void tell(const std::string& text);  // from any thread
  void clear();

 private:
  const bool live_;
  std::atomic<bool> shown_{false};
};

}  // namespace hyperrun
