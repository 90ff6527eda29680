// The controller's side of a run: what is done before the devices start, and what is left of it.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "runtime/control/controller.h"
#include "runtime/report/run_directory.h"
#include "runtime/run/arguments.h"
#include "runtime/run/run_kind.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

class Run {
 public:
  // Reads the job and compiles it. Throws what makes it one that cannot run. `arguments` outlive the run.
  explicit Run(const RunArguments& arguments);

  const Job& job() const { return kind_->job(); }  // that the devices run

  // Reads the inputs and makes the run directory; from here on a closed pipe does not end the run.
  // `local_ranks` ranks of this host must find room (0: their number is not known).
  void prepare(int local_ranks);

  // After prepare(). `drive` takes the driver to the end of the run. Returns the exit status.
  int execute(const std::function<control::Outcome(tasks::Driver&)>& drive);

 private:
  void require_room(int local_ranks, const std::filesystem::path& directory);
  void write_manifest(const Recorder& recorder, const control::Outcome* outcome) const;

  const RunArguments& arguments_;
  LoadedJob loaded_;
  Nanos started_;
  std::unique_ptr<RunKind> kind_;
  std::optional<RunDirectory> directory_;
};

}  // namespace hyperrun
