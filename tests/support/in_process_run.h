// Runs a job on devices that are threads of the test: with the real compiler, executor, collectives and
// arenas, without processes, controller or MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/executor.h"
#include "runtime/device/state_files.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun::testing {

struct RunOptions {
  int hosts = 1;  // number of emulated hosts, which exchange messages
  // Each host offers an equal share of the job's pool; devices that need more use that of other hosts.
  bool spread_pool = false;
  bool thread_per_stream = false;
  std::string save_to, load_from;  // checkpoint directories
  std::int64_t first_step = 0;
  std::int64_t steps = 0;                                          // 0: the job's number
  decltype(Feed::batch) batch;                                     // source of tokens; empty: a made-up text
  std::function<void(int device, std::int64_t step)> before_step;  // may throw, to be a device that fails
  std::function<void(int device, std::int64_t step)> after_step;
  // Makes for each device what is called after each of its steps, for collective work on its state.
  std::function<std::function<void(std::int64_t step)>(const StateContext&)> beside_steps;
  // Called when an instruction of a device has ended, with the addresses of its operands.
  std::function<void(int device, const Program&, std::size_t instr, const Addresses&)> observer;
  // The duration of each instruction of a training step; empty: as long as its work. Needs thread_per_stream.
  std::function<std::vector<Nanos>(const Plan& plan, int device)> durations;
  double dilation = 1;          // factor of the durations
  bool only_generates = false;  // from `load_from`, with the Programs of a generation alone
  bool only_scores = false;     // from `load_from`, samples(0), with the Program that scores alone
  std::function<Samples(std::int64_t step)> samples;          // for jobs that train a policy
  std::vector<std::vector<std::int32_t>> prompts{{5, 6, 7}};  // for jobs that generate
};

struct RunResult {
  std::vector<double> losses, grad_norms;
  std::map<std::string, std::vector<double>> reported;  // all scalars of the steps, by name
  std::vector<float> logp;                              // scores, [sequences, tokens]
  std::map<std::string, std::vector<float>> weights;    // whole weights at the end, by name
  std::map<std::string, std::vector<float>> moments;
  std::vector<InvocationStats> stats;  // by device, for the last step
  std::vector<Bytes> high_water;       // by device, for the whole run
  std::vector<Bytes> pool_high_water;
  std::vector<std::string> strays;  // state of which some device has other bits than its first owner
  std::map<std::int32_t, std::vector<int>> grown;  // generated tokens, by number of the prompt
  std::map<std::int32_t, std::vector<float>> grown_logp;
  std::vector<int> tokens;  // generated tokens of the first prompt
};

// Rethrows the first device's error; the other devices are cancelled.
RunResult run_in_process(const Job& job, const RunOptions& options = {});

}  // namespace hyperrun::testing
