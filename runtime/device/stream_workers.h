// Worker threads, one for each stream; the streams that communicate share one, which is called with kComm.
// run() gives all of them the same function with their stream, and returns when all have finished.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "runtime/ir/program.h"

namespace hyperrun {

class StreamWorkers {
 public:
  // `prepare_thread` is called once by each thread before its first work.
  explicit StreamWorkers(std::function<void()> prepare_thread);
  ~StreamWorkers();
  StreamWorkers(const StreamWorkers&) = delete;
  StreamWorkers& operator=(const StreamWorkers&) = delete;

  // Rethrows the first exception of any stream. `stop_others` is called after each exception. The other
  // streams must learn of it only there, so that their own exceptions are never the first.
  void run(const std::function<void(StreamKind)>& work, const std::function<void()>& stop_others);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun
