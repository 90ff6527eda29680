// The controller's side of a run: what is to be done before the devices start, and what comes of it.
#pragma once

#include <functional>
#include <memory>

#include "launcher/commands.h"
#include "runtime/control/controller.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

class Run {
 public:
  virtual ~Run() = default;
  virtual const Job& job() const = 0;  // that the devices run: their number, their clock

  // Inputs, run directory, what the devices get; from here on a closed pipe does not end the run. The ranks
  // of this host, where they are known (0: they are not), must find room.
  virtual void prepare(int local_ranks) = 0;

  // After prepare(). `drive`: takes the driver to the end of the run. Returns the exit status.
  virtual int execute(const std::function<control::Outcome(tasks::Driver&)>& drive) = 0;
};

// Of a job as it was read, with its inputs; all that can be refused is refused.
std::unique_ptr<Run> make_training_run(const RunArguments& arguments, LoadedJob loaded);
std::unique_ptr<Run> make_reinforcement_run(const RunArguments& arguments, LoadedJob loaded);
std::unique_ptr<Run> make_omni_run(const RunArguments& arguments, LoadedJob loaded);

Nanos unix_time();  // now

}  // namespace hyperrun
