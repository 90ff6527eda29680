// hyperrun sim JOB: the same programs on the simulated machine, without MPI.
#include <cstdio>
#include <string>

#include "launcher/commands.h"
#include "launcher/fit.h"
#include "launcher/recorder.h"
#include "launcher/tracing.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/report/report.h"
#include "runtime/report/table.h"
#include "runtime/report/trace.h"
#include "runtime/sim/groups.h"
#include "runtime/sim/job_forecast.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

RunReport report_of(const Job& job, const Plan& plan, const JobForecast& forecast) {
  const std::int64_t steps = job.training.steps;
  RunReport report;
  report.job = job.name;
  report.machine = "simulated";
  report.parameters = parameters(plan);
  report.tokens = steps * job.training.batch * job.model.sequence;
  report.time = forecast.step * steps;
  for (std::int64_t s = 0; s < steps; ++s) report.steps.push_back({s + 1, {}, {}, forecast.step});
  std::vector<DeviceReport> planned;  // by role
  for (const Role& role : plan.roles) planned.push_back(planned_use(job, role));
  for (int d = 0; d < job.supernode.devices; ++d) {
    InvocationStats stats = forecast.train.stats(d);
    stats.high_water = forecast.high_water[plan.role_of(d)][static_cast<std::size_t>(Tier::kHbm)];
    DeviceReport device = planned[plan.role_of(d)];
    device.device = d;
    device.host = "simulated";
    for (std::size_t s = 0; s < kStreams; ++s)
      device.streams.push_back({std::string(name(static_cast<StreamKind>(s))), {}});
    add_steps(stats, device, steps);
    report.devices.push_back(std::move(device));
  }
  return report;
}

void write_trace(const std::string& path, const Plan& plan, const SimResult& result) try {
  const auto devices = static_cast<int>(plan.mesh.devices());
  TraceWriter trace(path);
  for (int d = 0; d < devices; ++d) trace.device(d, "simulated");
  for (int d = 0; d < devices; ++d)
    add_invocation(trace, plan.of_device(d).program("train"), d, 0,
                   result.traced(d, plan.of_device(d).program("train")), 0);
  trace.close();
} catch (Error& e) {
  if (e.code() == Code::kUnwritable)
    e.fix("give --trace a file in a folder that is there, has room and that you may write to");
  throw;
}

std::string percent(double share) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.1f%%", 100 * share);
  return text.data();
}

}  // namespace

int simulate_job(const SimArguments& arguments) {
  const LoadedJob loaded = load_job(arguments.job);
  const Job& job = loaded.job;
  try {
    const Machine machine = machine_of(job.supernode);
    const Plan plan = compile(job).plan;
    require_fit(loaded, plan);
    const JobForecast f = forecast(job, plan, hosts_of(machine, job.supernode.devices));
    if (!arguments.trace.empty()) write_trace(arguments.trace, plan, f.train);
    const RunReport report = report_of(job, plan, f);
    if (arguments.json) {
      std::printf("%s", to_json(report).c_str());
      return 0;
    }
    Table table({left("simulated, " + machine.name), right("")});
    table.row({"step", to_string(f.step)});
    table.row({"tokens/s", with_separators(static_cast<std::int64_t>(f.tokens_per_second))});
    table.row({"model flops utilisation", percent(f.mfu)});
    table.row({"hardware flops utilisation", percent(f.hfu)});
    std::printf("%s\n%s", table.str().c_str(), to_text(report).c_str());
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
