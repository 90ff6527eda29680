// Executes a plan on devices that are threads of this process, without MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/device/device_threads.h"
#include "runtime/device/executor.h"
#include "runtime/ir/job.h"
#include "runtime/model/text/sampler.h"
#include "runtime/verify/merged.h"

namespace hyperrun {

// Receives an output of a node of the running program.
using Taker =
    std::function<void(int device, const Write& write, std::size_t output, std::span<std::byte> bytes)>;

// Runs one program after another, and hands the outputs of each instruction to `take`. Job, plan and feed
// must outlive this object. Arenas are as large as the plan asks for.
class Execution {
 public:
  Execution(const Job& job, const Plan& plan, const Merged& merged, const Feed& feed, Taker take);

  void run(std::string_view program, std::int64_t step);

  // The output of that name of the program that ran last, on the first device. It must exist.
  double output(std::string_view name) const;

 private:
  Executor& executor(int device);

  const Job& job_;
  const Plan& plan_;
  const Feed& feed_;
  Taker take_;
  std::map<const Program*, std::vector<Write>> writes_;  // by instruction
  DeviceThreads threads_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<std::pair<std::string, double>> outputs_;
};

// A feed of the sampler's tokens. The sampler must outlive it.
Feed feed_of(const Sampler& sampler);

}  // namespace hyperrun
