// The controller's side of a run: checks and compiles the job, makes the run directory, drives the devices,
// and leaves the results.
#pragma once

#include <memory>
#include <optional>

#include "runtime/device/copies_folder.h"
#include "runtime/rank/room.h"
#include "runtime/report/run_directory.h"
#include "runtime/run/arguments.h"
#include "runtime/run/run_kind.h"
#include "runtime/run/run_loop.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

class Run {
 public:
  // Reads and compiles the job. Throws if the job cannot run. `arguments` must outlive the run.
  explicit Run(const RunArguments& arguments);

  const Job& job() const { return kind_->job(); }  // the job that the devices run
  const std::filesystem::path& directory() const { return directory_->path(); }  // after prepare()

  // Reads the inputs and makes the run directory. From here on a closed pipe does not end the run. Throws
  // unless the devices of this host fit.
  void prepare(const OnThisHost& here);

  // Runs the job to its end; prepare() comes first. Returns the exit status.
  int execute(const Starter& starter, Restarts restarts);

 private:
  void require_room(const OnThisHost& here, const std::filesystem::path& directory);

  const RunArguments& arguments_;
  LoadedJob loaded_;
  std::optional<FaultModel> fault_model_;  // of run.chaos
  Nanos started_;
  std::unique_ptr<RunKind> kind_;
  std::optional<RunDirectory> directory_;
  std::optional<CopiesFolder> copies_;  // none if the state is not copied
};

}  // namespace hyperrun
