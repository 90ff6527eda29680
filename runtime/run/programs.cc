#include "runtime/run/programs.h"

#include "runtime/base/error.h"

namespace hyperrun {

void require_dilation(const LoadedJob& loaded) {
  if (loaded.job.run.clock != kPaced || loaded.job.run.dilation > 0) return;
  throw Error(Code::kBadValue, "programs side by side have one dilation, which the job has to give")
      .at(loaded.source.place("run.clock"))
      .legal("clock: \"paced\" with a dilation")
      .fix("add dilation: ... to run, so large that the real work fits");
}

void describe(const Job& job, std::int64_t parameters, ProgramsReport& report) {
  report.job = job.name;
  report.parameters = parameters;
  report.devices = job.supernode.devices;
  report.clock = job.run.clock;
  report.dilation = job.run.dilation;
}

}  // namespace hyperrun
