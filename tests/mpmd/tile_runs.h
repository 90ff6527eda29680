// What tests of Programs in tiles have in common, of rows of experts (tiles_*) and beside products
// (chunks_*), and those of pairs of passes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "runtime/compile/compile.h"
#include "tests/support/in_process_run.h"

namespace hyperrun::testing {

// On devices on which exchanging takes a good part of the time of computing; `link`: bytes/s.
Job with_slow_links(Job job, double link);

// "train" of the job's only role.
Program train(const Job& job);

// Of all instructions together: operations, and bytes that a device sends.
std::pair<std::int64_t, std::int64_t> flops_and_wire(const Program& program);

// Without any one of its waits there is a race. Returns how many there are.
int expect_every_wait_is_needed(Program program);

// Two runs of one job, whole and cut. A library adds up products of fewer rows in another order, and
// gradients of norms are summed tile by tile: 1e-5 of a loss. In bfloat16 what differs in last bits is
// rounded otherwise now and then: `allowed`.
void expect_same(const RunResult& whole, const RunResult& cut, const std::string& what,
                 double allowed = 1e-5);

// With half of the HBM that it takes the job computes the same, bit by bit. Returns the plan of that.
Plan expect_same_in_half_of_hbm(Job job);

// Peaks of a run in tiles are as planned; `check(whole, cut, what)` of each kind of communication.
void expect_as_planned(Job job,
                       const std::function<void(const Traffic&, const Traffic&, const std::string&)>& check);

}  // namespace hyperrun::testing
