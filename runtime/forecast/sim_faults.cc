#include "runtime/forecast/sim_faults.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>
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

std::int32_t replicas_of(const Job& job) {
  std::int32_t replicas = 1;
  for (const MeshAxis& axis : job.parallel.mesh)
    if (axis.name == "dp" || axis.name == "replicas") replicas *= axis.size;
  return replicas;
}

// The job with one replica fewer and its share of the batch left out. nullopt if there is only one, or if the
// batch has no such share.
std::optional<Job> with_a_replica_fewer(const Job& job) {
  Job smaller = job;
  for (MeshAxis& axis : smaller.parallel.mesh) {
    const bool splits_batch = axis.name == "dp" || axis.name == "replicas";
    if (!splits_batch || axis.size < 2 || job.training.batch % axis.size != 0) continue;
    smaller.training.batch -= job.training.batch / axis.size;
    smaller.supernode.devices -= job.supernode.devices / axis.size;
    --axis.size;
    return smaller;
  }
  return std::nullopt;
}

// How the speed of a step changes with a replica fewer. nullopt if no such layout exists: weights may not
// divide by the replicas that are left.
std::optional<double> smaller_speed(const Job& job, double step) {
  const std::optional<Job> smaller = with_a_replica_fewer(job);
  if (!smaller) return std::nullopt;
  try {
    return step / step_seconds(*smaller, compile(*smaller).plan);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_scales(const FaultSpec& spec, const FaultedRun& run) {
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
  FaultSpec spec = load_faults(arguments.faults);
  if (!arguments.devices.empty()) spec.scales = arguments.devices;
  const Job& job = loaded.job;
  if (!arguments.svg.empty()) require_writable_svg(arguments.svg, "--svg");
  const Compiled compiled = compile_with_status(job);
  print_warnings(warnings_of(loaded, compiled.training));
  require_fit(loaded, compiled.plan);
  FaultedRun run{.devices = job.supernode.devices};
  run.replica = run.devices / replicas_of(job);
  check_scales(spec, run);
  run.step = step_seconds(job, compiled.plan);
  run.state_bytes = kBytesOfAWeight * static_cast<double>(parameters(compiled.plan));
  const std::optional<double> speed = smaller_speed(job, run.step);
  run.smaller_speed = speed.value_or(1);
  FaultStudy study = study_faults(spec, run);
  study.job = job.name;
  study.smaller_is_simulated = speed.has_value();
  const std::string text = arguments.json ? to_json(study) : arguments.csv ? to_csv(study) : to_text(study);
  std::printf("%s", text.c_str());
  if (!arguments.svg.empty()) write_file_atomically(arguments.svg, to_svg(study));
  return 0;
}

}  // namespace hyperrun
