// Converts a Program to tasks for scheduling, and reorders it afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"
#include "runtime/mpmd/list_schedule.h"
#include "runtime/mpmd/windows.h"

namespace hyperrun {

// One task per instruction, with durations estimated for `device` of the machine, and with urgencies.
std::vector<StreamTask> tasks_of(const Program& program, const Machine& machine, int device);

// The tasks of a window, numbered from its begin. Earlier tasks count as ended. Urgencies stay.
std::vector<StreamTask> tasks_in(std::span<const StreamTask> tasks, const Window& window);

// 0, 1, ... n - 1.
std::vector<std::int32_t> identity_order(std::size_t n);

// Instruction order[i] becomes the i-th.
void reorder(Program& program, const std::vector<std::int32_t>& order);

// The live peak in HBM, with state, if instructions run one after another.
Bytes live_peak(const Program& program);

}  // namespace hyperrun
