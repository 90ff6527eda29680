// The executor runs Programs on the emulated device.
//
// Each stream runs in a thread of its own, except that the streams that communicate share one, which owns the
// world. Where threads cannot pay (ranks outnumber cores), all streams run in the caller's thread in Program
// order. A collective is then started at its place in the Program, moved on between instructions, and waited
// for only by instructions that depend on it, so it overlaps with compute all the same.
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

// Called when an instruction has ended, before any instruction that waits for it begins; its outputs are at
// `at`. The calls of one executor come one after the other.
using Observer = std::function<void(const Program& program, std::size_t instr, const Addresses& at)>;

struct ExecutorOptions {
  bool thread_per_stream = false;
  std::uint64_t seed = 1;
  std::atomic<std::int64_t>* progress = nullptr;  // last finished instruction, for heartbeats
  Observer observer;                              // may be empty
};

// The pace of a run: a clock on which an instruction lasts its given duration (or longer, if its work takes
// longer). So real threads and messages run to scale of another machine. A collective's time begins when its
// whole group has come to it.
struct Pace {
  const std::vector<Nanos>* durations = nullptr;  // one for each instruction
  double dilation = 1;                            // factor on each duration
};

struct InvocationResult {
  std::vector<std::pair<std::string, double>> outputs;  // scalars
  std::vector<OutputPart> arrays;                       // this device's parts of the outputs that are arrays
  InvocationStats stats;
};

class Executor {
 public:
  // The plan, memory, world and feed outlive the executor. The world is used by the caller's thread or, with
  // thread_per_stream, by the comm stream's thread during run() only.
  Executor(const Plan& plan, const DeviceMemory& memory, const PlanWorld& world, const Feed& feed,
           const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs program `index` of the plan. A `pace` needs thread_per_stream. Throws kDeviceLost if the world is
  // cancelled. The result is valid until the next call.
  const InvocationResult& run(std::size_t index, const Scalars& scalars, bool traced = false,
                              const Pace* pace = nullptr);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun
