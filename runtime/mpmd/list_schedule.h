// List scheduling on several streams: whenever a stream is free, it takes the ready task with the longest
// path behind it. Graham (1969) bounds how far from the best such a schedule can be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/program.h"

namespace hyperrun {

struct StreamTask {
  StreamKind stream = StreamKind::kCube;
  Nanos lasts{};
  Nanos urgency{};                  // the longest path from its begin to the end of all tasks
  std::vector<std::int32_t> after;  // tasks that must end before it begins; all have lower numbers
};

// Sets the urgency of each task.
void find_urgencies(std::span<StreamTask> tasks);

// Task numbers in the order in which the tasks begin. Tasks that begin at the same time are in an order that
// a single thread could run. Equally urgent tasks are taken by number.
std::vector<std::int32_t> list_schedule(std::span<const StreamTask> tasks);

// The end of the last task if each stream runs its tasks in `order`, which has all tasks behind those that
// they wait for.
Nanos makespan(std::span<const StreamTask> tasks, std::span<const std::int32_t> order);

}  // namespace hyperrun
