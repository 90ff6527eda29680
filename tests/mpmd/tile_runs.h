// Shared by tests of tiles (expert_tiles_*, collective_tiles_*) and of paired passes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "runtime/compile/compile.h"
#include "tests/support/in_process_run.h"

namespace hyperrun::testing {

// The job on devices whose exchanges take a good part of the time of computing. `link`: bytes/s.
Job with_slow_links(Job job, double link);

// The Program "train" of the job's only role.
Program train(const Job& job);

// Operations, and bytes that a device sends, of all instructions together.
std::pair<std::int64_t, std::int64_t> flops_and_wire(const Program& program);

// Expects a race if any one wait of the Program is left out. Returns the number of waits.
int expect_every_wait_is_needed(Program program);

// Compares two runs of one job, whole and in tiles. A library sums products of fewer rows in another order,
// and gradients of norms are summed tile by tile: 1e-5 of a loss. bfloat16 may round differences in last bits
// up; `allowed` is larger then.
void expect_same(const RunResult& whole, const RunResult& cut, const std::string& what,
                 double allowed = 1e-5);

// Expects that the job computes the same bits in half of its HBM. Returns the plan for that.
Plan expect_same_in_half_of_hbm(Job job);

// Expects the planned peaks of a run in tiles. Calls check(whole, cut, what) for each kind of communication.
void expect_as_planned(Job job,
                       const std::function<void(const Traffic&, const Traffic&, const std::string&)>& check);

}  // namespace hyperrun::testing
