// What a device uses, as reports have it: planned from its Programs, executed from what it measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"
#include "runtime/report/report.h"

namespace hyperrun {

// The plan of all Programs of a role: the peak of each tier, and HBM by category at its fullest moment.
DeviceReport planned_use(const Job& job, const Role& role);

// Plans for these Programs of the role alone, in place of what `device` has planned.
void set_planned(DeviceReport& device, std::span<const Program* const> programs);

// Adds `steps` steps that are alike: times, traffic and memory.
void add_steps(const InvocationStats& stats, DeviceReport& device, std::int64_t steps);

// Adds the memory of an invocation alone.
void add_memory(const InvocationStats& stats, DeviceReport& device);

std::string mesh_text(const Mesh& mesh);  // "dp 2 x tp 2"

std::int64_t parameters(const Plan& plan);  // weights, all devices together

}  // namespace hyperrun
