// The loop of a run: starts the devices and, after a loss, starts them again from the last checkpoint, until
// the work is done or no further start would help.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/control/controller.h"
#include "runtime/faults/fault_model.h"
#include "runtime/report/run_directory.h"
#include "runtime/run/arguments.h"
#include "runtime/run/chaos.h"
#include "runtime/run/fleet.h"
#include "runtime/run/recorder.h"
#include "runtime/run/restarts.h"
#include "runtime/run/run_kind.h"
#include "runtime/run/run_timeline.h"
#include "runtime/run/survivors.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// How the devices of a run are started.
struct Starter {
  // Starts them, and runs the driver to its end. Called again for each restart. `fault`: one for a device to
  // commit meanwhile.
  std::function<control::Outcome(const Job&, tasks::Driver&, const std::optional<FaultSpec>& fault)> start;
  Survivors* survivors = nullptr;  // null: no host is looked for
};

// The parts of a run that is prepared. All that is referred to must outlive the loop.
struct PreparedRun {
  const RunArguments& arguments;
  const LoadedJob& loaded;
  const std::optional<FaultModel>& fault_model;  // of run.chaos
  RunKind& kind;
  const RunDirectory& directory;
  std::filesystem::path copies;  // folder with copies of the state; empty: none are kept
  Nanos started;
};

class RunLoop {
 public:
  RunLoop(PreparedRun run, const Starter& starter, Restarts restarts);

  // Runs the job to its end, and writes the results. Called once. Returns the exit status.
  int run();

 private:
  void start_devices();
  bool goes_on();
  bool decide();
  bool starts_again(const Setback& setback, bool returned);
  std::int64_t begin_at_last_checkpoint();
  int conclude();
  void report(const Error& cause);
  void remove_untrusted_checkpoints(std::int64_t trusted) const;
  std::vector<std::filesystem::path> saved() const;
  std::int64_t last_saved_step() const;
  std::filesystem::path checkpoints() const { return run_.directory.path() / "checkpoints"; }
  std::int32_t devices() const { return spec().devices; }  // that the job asks for
  const SupernodeSpec& spec() const { return run_.loaded.job.supernode; }
  void write_manifest(const control::Outcome* outcome) const;

  PreparedRun run_;
  const Starter& starter_;
  Restarts restarts_;
  RunTimeline timeline_;
  std::unique_ptr<Recorder> recorder_;
  Chaos chaos_;
  Fleet fleet_;
  std::int32_t left_;  // devices for which the layout was chosen; it may use fewer
  std::unique_ptr<RunDriver> driver_;
  control::Outcome outcome_;  // of the last start
  Nanos failed_{};            // when its loss was known
  bool returned_ = false;     // it was on devices that had come back
};

}  // namespace hyperrun
