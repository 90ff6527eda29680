#include "runtime/forecast/sim_faults.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "runtime/advise/fit.h"
#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/faults/study.h"
#include "runtime/forecast/compile_with_status.h"
#include "runtime/report/faults/text.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/status_line.h"
#include "runtime/report/writable.h"
#include "runtime/run/device_use.h"
#include "runtime/sim/job_forecast.h"
#include "runtime/spec/faults_reader.h"

namespace hyperrun {
namespace {

// A checkpoint has each weight and its two moments in float32.
constexpr double kBytesOfAWeight = 12;

double step_seconds(const Job& job, const Plan& plan) {
  const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
  return static_cast<double>(forecast(job, plan, topology).step.value) * 1e-9;
}

// The axis along which whole replicas can be given up, or nullptr.
const MeshAxis* replica_axis(const Job& job) {
  for (const MeshAxis& axis : job.parallel.mesh)
    if ((axis.name == "dp" || axis.name == "replicas") && axis.size > 1) return &axis;
  return nullptr;
}

// The job with so many of its replicas, and their share of the batch.
Job with_replicas(const Job& job, const MeshAxis& replicas, std::int32_t left) {
  Job smaller = job;
  for (MeshAxis& axis : smaller.parallel.mesh)
    if (axis.name == replicas.name) axis.size = left;
  smaller.training.batch = job.training.batch / replicas.size * left;
  smaller.supernode.devices = job.supernode.devices / replicas.size * left;
  return smaller;
}

// The known facts of a run on fewer replicas.
struct SmallerWorld {
  std::int32_t replica = 1;       // devices that are given up at a time; all of them if it cannot be smaller
  double share = 0.5, speed = 1;  // FaultedRun::smaller_share and smaller_speed
  std::string said;
};

// Tries one replica fewer, then half of them: weights that are split over replicas may not divide otherwise.
SmallerWorld smaller_world(const Job& job, double step) {
  const MeshAxis* const axis = replica_axis(job);
  const std::int32_t devices = job.supernode.devices;
  if (axis == nullptr || job.training.batch % axis->size != 0)
    return {devices, 0.5, 1, "the job is one replica, which elastic gives up as a whole"};
  const std::int32_t replica = devices / axis->size;
  bool too_large = false;
  for (const std::int32_t left : {axis->size - 1, axis->size / 2}) {
    try {
      const Job smaller = with_replicas(job, *axis, left);
      const Plan plan = compile(smaller).plan;
      check_fits(plan, smaller.supernode);
      return {
          replica, static_cast<double>(left) / axis->size, step / step_seconds(smaller, plan),
          fmt::format("with fewer replicas their share of the batch is left out, and a step takes as long as "
                      "simulated with {} of {}",
                      left, axis->size)};
    } catch (const Error& e) {
      too_large = too_large || e.code() == Code::kDoesNotFit;
    }
  }
  if (too_large)
    return {devices, 0.5, 1,
            "with fewer replicas the job does not fit: elastic gives up as many devices as it has"};
  return {replica, 0.5, 1,
          "with fewer replicas their share of the batch is left out, and a step is taken to last as long"};
}

void check_scales(const FaultModel& spec, const FaultedRun& run) {
  for (const std::int32_t devices : spec.scales)
    if (devices < 1 || devices % run.replica != 0)
      throw Error(Code::kBadValue,
                  fmt::format("{} devices are no whole replicas of {}", devices, run.replica))
          .at("--faults, scales")
          .legal(fmt::format("multiples of {}", run.replica))
          .fix(fmt::format("the nearest is {}", std::max(1, devices / run.replica) * run.replica));
}

}  // namespace

int simulate_faults(const LoadedJob& loaded, const SimArguments& arguments) {
  if (!loaded.job.programs.empty())
    throw Error(Code::kUsage,
                "the job has several programs, and what faults cost is foretold for one training")
        .at("--faults")
        .legal("a job without programs")
        .fix("make a job of the program that trains");
  FaultModel spec = load_faults(arguments.faults);
  if (!arguments.devices.empty()) spec.scales = arguments.devices;
  const Job& job = loaded.job;
  if (!arguments.svg.empty()) require_writable_svg(arguments.svg, "--svg");
  const Compiled compiled = compile_with_status(job);
  print_warnings(warnings_of(loaded, compiled.training));
  require_fit(loaded, compiled.plan);
  FaultedRun run{.devices = job.supernode.devices};
  run.step = step_seconds(job, compiled.plan);
  run.state_bytes = kBytesOfAWeight * static_cast<double>(parameters(compiled.plan));
  const SmallerWorld smaller = smaller_world(job, run.step);
  run.replica = smaller.replica;
  run.smaller_share = smaller.share, run.smaller_speed = smaller.speed;
  check_scales(spec, run);
  FaultStudy study = study_faults(spec, run);
  study.job = job.name;
  study.smaller = smaller.said;
  const std::string text = arguments.json ? to_json(study) : arguments.csv ? to_csv(study) : to_text(study);
  std::printf("%s", text.c_str());
  if (!arguments.svg.empty()) write_file_atomically(arguments.svg, to_svg(study));
  return 0;
}

}  // namespace hyperrun
