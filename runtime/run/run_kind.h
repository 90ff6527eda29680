// What differs between kinds of runs: a training, a job that learns from rewards, a job with encoders. What
// is the same for all is run.h's.
#pragma once

#include <memory>
#include <vector>

#include "runtime/model/text/tokenizer.h"
#include "runtime/report/run_directory.h"
#include "runtime/run/run_driver.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

class RunKind {
 public:
  virtual ~RunKind() = default;

  virtual const Job& job() const = 0;  // that the devices run: their number, their clock
  virtual std::vector<Session>& sessions() = 0;
  virtual const Tokenizer& tokenizer() const = 0;  // after read_inputs()

  // Reads what was not read to check the job, such as the corpus; nothing is written yet.
  virtual void read_inputs() {}
  // Gives the sessions their directories and files. `directory` has the tokenizer.
  virtual void enter(const RunDirectory& directory) = 0;

  // Whether the run directory gets a trace.
  virtual bool traces() const { return true; }

  // Describes the run on standard output, before it starts.
  virtual void announce() const = 0;

  struct Driven {
    std::unique_ptr<Recorder> recorder;
    std::unique_ptr<RunDriver> driver;
  };
  virtual Driven make_driver(RecorderOutputs outputs) = 0;

  // The run has ended, the recorder has finished. `all_done`: it did all that it was to do.
  virtual void conclude(const RunDirectory& directory, bool all_done) {
    static_cast<void>(directory), static_cast<void>(all_done);
  }
};

// Each throws what makes the job one that cannot run, with its line. `loaded` has its inputs.
std::unique_ptr<RunKind> make_training(const LoadedJob& loaded);
std::unique_ptr<RunKind> make_reinforcement(const LoadedJob& loaded);
std::unique_ptr<RunKind> make_omni(const LoadedJob& loaded);

}  // namespace hyperrun
