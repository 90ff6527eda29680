// One-sided access to memory that other ranks lend. Those ranks only have to progress MPI. One thread uses a
// port; calls block only where a port cannot avoid it.
#pragma once

#include <cstddef>

#include "runtime/base/units.h"

namespace hyperrun {

class OneSidedPort {
 public:
  virtual ~OneSidedPort() = default;

  // Begin an operation on one of kLanes lanes, each of which holds one operation in flight. The lane is free
  // again once test() returns true. For a put that means that the bytes have arrived.
  virtual void get(int lane, std::byte* into, Bytes bytes, int rank, Bytes offset) = 0;
  virtual void put(int lane, const std::byte* from, Bytes bytes, int rank, Bytes offset) = 0;
  virtual bool test(int lane) = 0;
  virtual void serve() = 0;  // progresses other ranks' operations on this rank's memory

  static constexpr int kLanes = 4;
};

}  // namespace hyperrun
