// A Program as tasks of streams, and back in another order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"
#include "runtime/mpmd/list_schedule.h"
#include "runtime/mpmd/windows.h"

namespace hyperrun {

// One an instruction, as long as is estimated for `device` of the machine, with urgencies.
std::vector<StreamTask> tasks_of(const Program& program, const Machine& machine, int device);

// Those of a window, numbered from its begin: what is before it has ended. Urgencies stay.
std::vector<StreamTask> tasks_in(std::span<const StreamTask> tasks, const Window& window);

// 0, 1, ... n - 1.
std::vector<std::int32_t> as_it_stands(std::size_t n);

// Instruction order[i] becomes the i-th.
void put_in_order(Program& program, const std::vector<std::int32_t>& order);

// In HBM with state, when the instructions run one after the other.
Bytes most_live(const Program& program);

}  // namespace hyperrun
