// The memory, time and traffic of a device in the form of reports. Planned figures come from its Programs,
// executed figures from its statistics.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"
#include "runtime/report/report.h"

namespace hyperrun {

// The planned use of all Programs of a role: the peak of each tier, and HBM by category at its fullest
// moment.
DeviceReport planned_use(const Job& job, const Role& role);

// Replaces the planned use of `device` by that of these Programs of the role.
void set_planned(DeviceReport& device, std::span<const Program* const> programs);

// Adds the times, traffic and memory of `steps` equal steps.
void add_steps(const InvocationStats& stats, DeviceReport& device, std::int64_t steps);

// Adds the memory of an invocation, but not its time and traffic.
void add_memory(const InvocationStats& stats, DeviceReport& device);

std::string describe_mesh(const Mesh& mesh);  // "dp 2 x tp 2"

std::int64_t parameters(const Plan& plan);  // number of weights of the whole model

}  // namespace hyperrun
