#include "runtime/validate/run_model.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

// The numbers of micro-batches to compile. The two steps differ by several micro-batches, because each one
// gets other addresses than the one before, and so not exactly the same time.
std::vector<std::int32_t> micro_batches_to_compile(const PublishedRun& run) {
  const std::int32_t more = std::max(8, run.pipeline / 4), full = run.pipeline + more;
  if (run.micro_batches() <= full + more) return {run.micro_batches()};
  return {full, full + more};
}

}  // namespace

RunModel::RunModel(const PublishedRun& run, const Software& software)
    : RunModel(run, software, micro_batches_to_compile(run)) {}

RunModel RunModel::whole(const PublishedRun& run) { return {run, {}, {run.micro_batches()}}; }

RunModel::RunModel(const PublishedRun& run, const Software& software,
                   const std::vector<std::int32_t>& micro_batches)
    : devices_(run.devices), micro_batches_(run.micro_batches()) {
  for (const std::int32_t n : micro_batches) {
    Job job = job_of(run, n);
    if (!software.name.empty()) {
      job.supernode.machine = machine_of(job.supernode);
      job.supernode.machine->software = software;
    }
    steps_.push_back({n, compile(job).plan});
  }
}

double RunModel::gibibytes() const {
  return static_cast<double>(steps_.back().plan.peak().value) / static_cast<double>(1 << 30);
}

double RunModel::milliseconds(const Machine& machine) const {
  SupernodeSpec spec;
  spec.devices = devices_;
  spec.machine = machine;
  const Bytes needs = steps_.back().plan.peak();
  if (static_cast<double>(needs.value) > machine.hbm_of_jobs())
    throw Error(Code::kDoesNotFit, "a device of \"" + machine.name + "\" has " +
                                       to_string(Bytes(static_cast<std::int64_t>(machine.hbm_of_jobs()))) +
                                       " of HBM, the run needs " + to_string(needs))
        .legal("runs that fit")
        .fix("leave the run out");
  const auto time = [&](const Steps& s) {
    constexpr double kNanos = 1e6;
    return static_cast<double>(simulate(s.plan, "train", spec, hosts_of(machine, devices_)).makespan.value) /
           kNanos;
  };
  const double last = time(steps_.back());
  if (steps_.size() == 1) return last;
  const Steps &some = steps_.front(), &more = steps_.back();
  return last + (last - time(some)) * (micro_batches_ - more.micro_batches) /
                    (more.micro_batches - some.micro_batches);
}

}  // namespace hyperrun
