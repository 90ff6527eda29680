#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

namespace hyperrun {

// What a command is at, for those who wait: one line of standard error that is written again and again, and
// cleared at the end, so that results stand alone. Where that is no terminal, a line now and then, of long
// work alone.
class StatusLine {
 public:
  // `between`: lines that are not written again.
  explicit StatusLine(std::chrono::milliseconds between = std::chrono::seconds(10));
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void tell(const std::string& text);  // from any thread
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void tell_now_and_then(const std::string& text);

  const bool live_;
  const std::chrono::milliseconds between_;
  std::atomic<bool> shown_{false};
  std::mutex mutex_;
  Clock::time_point told_ = Clock::now();
};

}  // namespace hyperrun
