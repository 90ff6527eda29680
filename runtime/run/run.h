// The controller's side of a run: checks and compiles the job, makes the run directory, drives the devices,
// and leaves the results.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "runtime/control/controller.h"
#include "runtime/device/copies_folder.h"
#include "runtime/rank/room.h"
#include "runtime/report/run_directory.h"
#include "runtime/run/arguments.h"
#include "runtime/run/fleet.h"
#include "runtime/run/restarts.h"
#include "runtime/run/run_kind.h"
#include "runtime/run/run_timeline.h"
#include "runtime/run/survivors.h"
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

  // How the devices of a run are started.
  struct Starter {
    // Starts them, and runs the driver to its end. Called again for each restart. `fault`: one for a device
    // to commit meanwhile.
    std::function<control::Outcome(const Job&, tasks::Driver&, const std::optional<FaultSpec>& fault)> start;
    Survivors* survivors = nullptr;  // null: no host is looked for
  };
  // Runs the job to its end; prepare() comes first. Returns the exit status.
  int execute(const Starter& starter, Restarts restarts);

 private:
  void require_room(const OnThisHost& here, const std::filesystem::path& directory);
  void report(const Error& cause, Recorder& recorder) const;
  std::int32_t devices() const { return loaded_.job.supernode.devices; }  // that the job asks for
  std::int64_t go_on(const Fleet& fleet);
  bool go_on_after(control::Outcome& outcome, Nanos failed, const Restarts& restarts, Fleet& fleet,
                   Recorder& recorder);
  void remove_untrusted_checkpoints(std::int64_t trusted) const;
  std::optional<std::filesystem::path> last_checkpoint() const;
  void write_manifest(const Recorder& recorder, const control::Outcome* outcome) const;

  const RunArguments& arguments_;
  LoadedJob loaded_;
  std::optional<FaultModel> fault_model_;  // of run.chaos
  Nanos started_;
  std::unique_ptr<RunKind> kind_;
  std::optional<RunDirectory> directory_;
  std::int32_t left_ = 0;               // devices for which the layout was chosen; it may use fewer
  std::optional<CopiesFolder> copies_;  // none if the state is not copied
};

}  // namespace hyperrun
