// A task is one execution of a program on one group of devices. Tasks give each other futures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::tasks {

using ProgramIndex = std::int32_t;
using PlaceId = std::int32_t;
using FutureId = std::int64_t;
using TaskId = std::int64_t;  // increases with submission

// One of the programs that run side by side: a sub-model, a rollout, a learner.
struct TaskProgram {
  std::string name;
  double share = 1;        // weight among the programs that wait for the same group; above 0
  std::int64_t queue = 0;  // most outputs being made or not yet used; 0: no limit
  Bytes queue_bytes{};     // the most bytes of these; 0: no limit
};

// The output of a task. It exists from the task's end until `uses` tasks that take it as input are done.
struct FutureSpec {
  std::string name;
  Bytes bytes{};
  std::int32_t uses = 1;
};

struct TaskSpec {
  ProgramIndex program = 0;
  PlaceId place = 0;  // any group of the place may run the task
  std::int64_t step = 0;
  std::int32_t priority = 0;  // higher goes first
  std::vector<FutureId> inputs, outputs;
};

struct Issue {
  TaskId task = -1;
  GroupId group = kEveryDevice;
};

// The progress of a program.
struct ProgramProgress {
  std::string name;
  std::int64_t submitted = 0, issued = 0, done = 0;
  // Unissued tasks, by the first reason that holds them: a missing input, a full queue of the program's
  // outputs, or busy devices.
  std::int64_t wait_for_input = 0, wait_for_queue = 0, wait_for_devices = 0;
  std::int64_t queued = 0, most_queued = 0;  // outputs being made or not yet used
  Bytes queued_bytes{};
};

}  // namespace hyperrun::tasks
