#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace hyperrun {

// What a command is at, for those who wait: one line of standard error that is written again and again, and
// cleared at the end, so that results stand alone. Where that is no terminal, a line now and then, of long
// work alone, whether there is news or not, with the seconds since its begin.
class StatusLine {
 public:
  // `between`: lines that are not written again; 0: each at once.
  explicit StatusLine(std::chrono::milliseconds between = std::chrono::seconds(10));
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void tell(const std::string& text);  // from any thread
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void tell_now_and_then();      // locked
  void repeat(std::stop_token);  // what was told last, until something else is

  const bool live_;
  const std::chrono::milliseconds between_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::string text_;  // empty: nothing is to be told
  Clock::time_point told_ = begin_;
  std::jthread repeating_;  // the last: it uses all others
};

}  // namespace hyperrun
