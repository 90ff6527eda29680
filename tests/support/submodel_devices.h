// Runs a submodel on devices that are threads of the test. Its Programs are run one by one, and its state can
// be read and written between them.
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
  // Compiles the submodel and runs "init".
  explicit SubmodelDevices(const SubmodelSpec& spec);

  const Plan& plan() const { return plan_; }

  struct Result {
    std::map<std::string, double> scalars;
    std::vector<float> logp;  // output of "score", [sequences, tokens]
  };
  // Runs a program on `devices`; empty: on all.
  Result run(const std::string& program, const Scalars& scalars, std::vector<int> devices = {});

  // Reads or writes whole tensors of the plan's state.
  std::vector<float> read(const std::string& name);
  void write(const std::string& name, const std::vector<float>& values);  // on all devices
  // Reads or writes one slot of a port.
  std::vector<float> read_slot(const std::string& port, std::int64_t slot);
  void write_slot(const std::string& port, std::int64_t slot, const std::vector<float>& values);

  // The state of one class, by name.
  std::map<std::string, std::vector<float>> state(TensorClass cls);

  // One device's part of a sum of gradients.
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
