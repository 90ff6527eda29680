// A job on devices that are threads of the test: the real compiler, executor, collectives and arenas,
// without processes, controller or MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/executor.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun::testing {

struct RunOptions {
  int hosts = 1;  // devices spread over so many emulated hosts (messages between them)
  bool spread_pool =
      false;  // each host offers its share of the job's pool, and what is too much lies elsewhere
  bool thread_per_stream = false;
  std::string save_to, load_from;  // checkpoint directories
  std::int64_t first_step = 0;
  std::int64_t steps = 0;       // 0: the job's
  decltype(Feed::batch) batch;  // where tokens come from; empty: a made-up text
  std::function<void(int device, std::int64_t step)> before_step;  // may throw, to be a device that fails
  std::function<void(int device, std::int64_t step)> after_step;
  // Called when an instruction of a device has ended, with where its operands are.
  std::function<void(int device, const Program&, std::size_t instr, const Addresses&)> observer;
  // How long each instruction of a training step lasts; empty: as long as its work. With thread_per_stream.
  std::function<std::vector<Nanos>(const Plan& plan, int device)> durations;
  double dilation = 1;          // by which each is stretched
  bool only_generates = false;  // from `load_from`, with the Programs of a generation alone
  bool only_scores = false;     // from `load_from`, samples(0), with the Program that scores alone
  std::function<Samples(std::int64_t step)> samples;          // of a job that trains a policy
  std::vector<std::vector<std::int32_t>> prompts{{5, 6, 7}};  // of a job that generates
};

struct RunResult {
  std::vector<double> losses, grad_norms;
  std::map<std::string, std::vector<double>> reported;  // all scalars of the steps, by name
  std::vector<float> logp;                              // of what was scored, [sequences, tokens]
  std::map<std::string, std::vector<float>> weights;    // whole, by name, at the end
  std::map<std::string, std::vector<float>> moments;
  std::vector<InvocationStats> stats;  // of the last step, by device
  std::vector<Bytes> high_water;       // of the whole run, by device
  std::vector<Bytes> pool_high_water;
  std::vector<std::string> strays;  // state of which a device holds other bits than its first owner
  std::map<std::int32_t, std::vector<int>> grown;  // what each prompt has grown by, as its number
  std::map<std::int32_t, std::vector<float>> grown_logp;
  std::vector<int> tokens;  // of what the first has grown by
};

// Rethrows the first device's error; the other devices are cancelled.
RunResult run_in_process(const Job& job, const RunOptions& options = {});

}  // namespace hyperrun::testing
