// Memory that other ranks lend, read and written without their doing anything but moving MPI on. Used by one
// thread, without blocking but for what a port cannot help.
#pragma once

#include <cstddef>

#include "runtime/base/units.h"

namespace hyperrun {

class OneSidedPort {
 public:
  virtual ~OneSidedPort() = default;

  // Of each lane one operation may be under way; its lane is free again once test() has said true, which for
  // a put means that the bytes lie there. Of lanes there are kLanes.
  virtual void get(int lane, std::byte* into, Bytes bytes, int rank, Bytes offset) = 0;
  virtual void put(int lane, const std::byte* from, Bytes bytes, int rank, Bytes offset) = 0;
  virtual bool test(int lane) = 0;
  virtual void serve() = 0;  // moves on what others read and write here

  static constexpr int kLanes = 4;
};

}  // namespace hyperrun
