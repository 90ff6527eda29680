// One kind of run: a training, a job that learns from rewards, or a job with encoders. run.h has the part
// that is common to all kinds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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

  // Makes the recorder of the run. Called once.
  virtual std::unique_ptr<Recorder> make_recorder(RecorderOutputs outputs) = 0;
  // Makes a driver for each start, after make_recorder(). It begins where the sessions say. `pause` is asked
  // after each checkpoint on the way whether the run ends there for now; kinds that keep their layout may
  // never ask.
  virtual std::unique_ptr<RunDriver> make_driver(std::function<bool(std::int64_t step)> pause) = 0;

  // Steps that were done before the run began: those of the checkpoint that it resumes.
  virtual std::int64_t first_step() const { return 0; }
  // Has the next driver begin behind a checkpoint that the run has saved. Returns the number of steps done.
  virtual std::int64_t go_on_from(const std::filesystem::path& checkpoint) = 0;
  // Has all further drivers begin behind the samples of the first `steps` steps, as the last one counts them.
  // Comes before go_on_from().
  virtual void leave_out_samples_of(std::int64_t steps) { static_cast<void>(steps); }
  // The samples that the next driver does not see though no step before it has: the first, and their number.
  virtual LeftOut left_out() const { return {}; }

  // Has the next driver run under another layout, on as many devices as `job` says; go_on_from() follows.
  // Throws kBadLayout if the kind of run keeps its layout.
  virtual void change_to(const Job& job);

  // Adds to an error that ends the run what can be done about it.
  virtual Error with_remedy(const Error& cause) const { return cause; }

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
