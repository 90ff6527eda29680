#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace hyperrun {

// The status of a command, for users who wait: one line of standard error that is overwritten again and
// again, and cleared at the end, so that results stand alone. Without a terminal, long work prints a line now
// and then, whether there is news or not, with the seconds since its beginning.
class StatusLine {
 public:
  // `between` is the interval of lines that are not overwritten; 0: each line at once.
  explicit StatusLine(std::chrono::milliseconds between = std::chrono::seconds(10));
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void tell(const std::string& text);  // may be called from any thread
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void tell_now_and_then();      // the lock must be held
  void repeat(std::stop_token);  // repeats the last text until another comes

  const bool live_;
  const std::chrono::milliseconds between_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::string text_;  // empty: there is nothing to tell
  Clock::time_point told_ = begin_;
  std::jthread repeating_;  // the last member: it uses all others
};

}  // namespace hyperrun
