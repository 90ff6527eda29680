// The manifest of a run: the command, the hosts, the libraries, and how the run ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/control/controller.h"
#include "runtime/ir/job.h"
#include "runtime/report/run_directory.h"
#include "runtime/run/arguments.h"
#include "runtime/run/recorder.h"

namespace hyperrun {

// `outcome` is null while the run goes on.
Manifest manifest_of(const Job& job, const RunArguments& arguments, const Recorder& recorder, Nanos started,
                     const control::Outcome* outcome);

}  // namespace hyperrun
