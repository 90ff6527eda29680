// Runs Programs on the emulated device.
//
// Streams run in one thread each (those that communicate in one together, which owns the world), or, where
// threads cannot pay (ranks outnumber cores), all in the caller's thread in Program order. There a collective
// is started where it stands, moved on between instructions, and waited for only by what depends on it, so it
// overlaps with compute all the same.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device_memory.h"
#include "runtime/device/kernel.h"
#include "runtime/device/output_arrays.h"
#include "runtime/device/plan_world.h"
#include "runtime/device/prepared.h"
#include "runtime/ir/live_bytes.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// Called when an instruction has ended, before anything that waits for it begins: its outputs are at `at`.
// The calls of one executor come one after the other.
using Observer = std::function<void(const Program& program, std::size_t instr, const Addresses& at)>;

struct ExecutorOptions {
  bool thread_per_stream = false;
  std::uint64_t seed = 1;
  std::atomic<std::int64_t>* progress = nullptr;  // the last finished instruction, for heartbeats
  Observer observer;                              // may be empty
};

// A clock on which instructions last as long as they are told to (or as long as their work takes, if that is
// more), so that real threads and messages run to scale of another machine. A collective begins to last when
// all of its group have come to it.
struct Pace {
  const std::vector<Nanos>* durations = nullptr;  // one an instruction
  double dilation = 1;                            // by which each is stretched
};

struct InvocationResult {
  std::vector<std::pair<std::string, double>> outputs;  // scalars
  std::vector<OutputPart> arrays;                       // this device's parts of them
  InvocationStats stats;
};

class Executor {
 public:
  // The plan, memory, world and feed outlive the executor. The world is used by the caller's thread, or
  // with thread_per_stream by the comm stream's during run() only.
  Executor(const Plan& plan, const DeviceMemory& memory, const PlanWorld& world, const Feed& feed,
           const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs program `index` of the plan, to `pace` if there is one, which needs thread_per_stream. Throws
  // kDeviceLost when the world is cancelled. The result is valid until the next call.
  const InvocationResult& run(std::size_t index, const Scalars& scalars, bool traced = false,
                              const Pace* pace = nullptr);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun
