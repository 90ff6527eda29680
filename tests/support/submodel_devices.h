// A sub-model on devices that are threads of the test: its Programs are run one by one, and between them its
// state is read and written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/compose/submodel.h"
#include "runtime/device/device_threads.h"
#include "runtime/device/executor.h"

namespace hyperrun::testing {

class SubmodelDevices {
 public:
  // "init" has run.
  explicit SubmodelDevices(const SubmodelSpec& spec);

  const Plan& plan() const { return plan_; }

  struct Result {
    std::map<std::string, double> scalars;
    std::vector<float> logp;  // of "score", [sequences, tokens]
  };
  // `devices`: that run it; none: all.
  Result run(const std::string& program, const Scalars& scalars, std::vector<int> devices = {});

  // Whole tensors of the plan's state, as numbers.
  std::vector<float> read(const std::string& name);
  void write(const std::string& name, const std::vector<float>& values);  // on all devices
  // One slot of a port.
  std::vector<float> read_slot(const std::string& port, std::int64_t slot);
  void write_slot(const std::string& port, std::int64_t slot, const std::vector<float>& values);

  // The state of one class, by name.
  std::map<std::string, std::vector<float>> state(TensorClass cls);

  // A sum of gradients as one device has it.
  std::vector<float> sum(const std::string& gradient, int device = 0);

 private:
  const StateTensor& tensor(const std::string& name) const;

  Job job_;
  Plan plan_;
  Feed feed_;
  DeviceThreads threads_;
  std::vector<std::unique_ptr<Executor>> executors_;
};

}  // namespace hyperrun::testing
