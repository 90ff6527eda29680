// One kind of run: a training, a job that learns from rewards, or a job with encoders. run.h has the part
// that is common to all kinds.
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

  virtual const Job& job() const = 0;  // the job that the devices run, after scaling
  virtual std::vector<Session>& sessions() = 0;
  virtual const Tokenizer& tokenizer() const = 0;  // valid after read_inputs()

  // Reads the inputs that checking the job did not need, such as the corpus. Writes nothing.
  virtual void read_inputs() {}
  // Gives the sessions their directories and files. `directory` already has the tokenizer's file.
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

  // Called when the run has ended and the recorder has finished. `all_done`: the run did all of its work.
  virtual void conclude(const RunDirectory& directory, bool all_done) {
    static_cast<void>(directory), static_cast<void>(all_done);
  }
};

// Each throws an error with the job's line if the job cannot run. `loaded` has passed check_inputs().
std::unique_ptr<RunKind> make_training(const LoadedJob& loaded);
std::unique_ptr<RunKind> make_reinforcement(const LoadedJob& loaded);
std::unique_ptr<RunKind> make_omni(const LoadedJob& loaded);

}  // namespace hyperrun
