// Work in a thread of its own, one piece at a time, which takes a core only while nothing else wants it.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace hyperrun {

class BackgroundTask {
 public:
  BackgroundTask() = default;
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;
  ~BackgroundTask() { wait(); }

  // Starts the work, which must not throw. Waits first for the work before.
  void begin(std::function<void()> work);
  void wait();
  bool busy() const { return busy_; }

 private:
  std::thread thread_;
  std::atomic<bool> busy_{false};
};

}  // namespace hyperrun
