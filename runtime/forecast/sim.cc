// hyperrun sim JOB: simulates the Programs that a run would execute, without MPI.
#include "runtime/forecast/sim.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/advise/fit.h"
#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/forecast/chakra_trace.h"
#include "runtime/forecast/compile_with_status.h"
#include "runtime/forecast/range.h"
#include "runtime/forecast/sim_faults.h"
#include "runtime/forecast/sim_omni.h"
#include "runtime/forecast/sim_reinforcement.h"
#include "runtime/forecast/simulated_report.h"
#include "runtime/forecast/step_tables.h"
#include "runtime/report/describe_range.h"
#include "runtime/report/instruction_trace.h"
#include "runtime/report/report.h"
#include "runtime/report/table.h"
#include "runtime/report/trace.h"
#include "runtime/run/device_use.h"
#include "runtime/sim/job_forecast.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

// The devices in the traces: those of --devices, else all.
std::vector<int> traced_devices(const SimArguments& arguments, int devices) {
  if (!arguments.devices.empty() && arguments.trace.empty() && arguments.chakra.empty())
    throw Error(Code::kUsage, "no traces are asked for")
        .at("--devices")
        .fix("add --trace or --chakra, or leave it out");
  std::vector<int> list = arguments.devices;
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (!list.empty() && list.back() >= devices)
    throw Error(Code::kUsage, fmt::format("there is no device {}", list.back()))
        .at("--devices")
        .legal(fmt::format("0 to {}", devices - 1));
  if (list.empty())
    for (int d = 0; d < devices; ++d) list.push_back(d);
  return list;
}

SimOptions options_of(const SimArguments& arguments, int devices) {
  SimOptions options{.jitter = arguments.jitter, .seed = arguments.seed};
  for (const std::string& text : arguments.slow) {
    const auto refuse = [&](const std::string& cause) {
      return Error(Code::kUsage, fmt::format("\"{}\" {}", text, cause))
          .at("--slow")
          .legal("DEVICE:FACTOR, such as 7:1.3");
    };
    const char* const end = text.data() + text.size();
    std::int64_t device = 0;
    double factor = 0;
    const auto number = std::from_chars(text.data(), end, device);
    if (number.ec != std::errc() || number.ptr == end || *number.ptr != ':')
      throw refuse("names no slow device");
    const auto times = std::from_chars(number.ptr + 1, end, factor);
    if (times.ec != std::errc() || times.ptr != end) throw refuse("names no slow device");
    if (device < 0 || device >= devices)
      throw refuse(fmt::format("names none of the devices 0 to {}", devices - 1));
    if (!options.slow.try_emplace(static_cast<int>(device), factor).second)
      throw refuse("names a device that is named already");
  }
  return options;
}

void write_trace(const std::string& path, const std::vector<int>& devices, const Plan& plan,
                 const SimResult& result) try {
  TraceWriter trace(path);
  for (const int d : devices) trace.device(d, "simulated");
  for (const int d : devices)
    add_invocation(trace, plan.of_device(d).program("train"), d, 0,
                   result.traced(d, plan.of_device(d).program("train")), 0);
  trace.close();
} catch (Error& e) {
  if (e.code() == Code::kUnwritable)
    e.fix("give --trace a file in a folder that is there, has room and that you may write to");
  throw;
}

void print_csv(const RunReport& report, const SimResult& result) {
  std::printf("device,step_ns,exposed_communication_ns,hbm_peak_bytes,moved_bytes");
  for (const StreamUse& s : report.devices.front().streams) std::printf(",%s_ns", s.stream.c_str());
  std::printf(",compute_ns,communication_ns,transfer_ns,bubble_ns,optimizer_ns\n");
  const auto steps = std::max<std::int64_t>(1, std::ssize(report.steps));
  for (const DeviceReport& d : report.devices) {
    Bytes moved;
    for (const CollectiveUse& c : d.collectives) moved += c.bytes;
    std::printf("%d,%lld,%lld,%lld,%lld", d.device, static_cast<long long>(d.time.value / steps),
                static_cast<long long>(d.exposed_communication.value / steps),
                static_cast<long long>(d.tiers.front().executed_peak.value),
                static_cast<long long>(moved.value / steps));
    for (const StreamUse& s : d.streams) std::printf(",%lld", static_cast<long long>(s.busy.value / steps));
    const auto c = static_cast<std::size_t>(result.class_of[static_cast<std::size_t>(d.device)]);
    const Breakdown& b = result.parts[c];
    for (const Nanos part : {b.compute, b.communication, b.transfer, b.bubble, b.optimizer})
      std::printf(",%lld", static_cast<long long>(part.value));
    std::printf("\n");
  }
}

// Explains the costliest instructions of the device that takes longest.
void print_explanation(const Job& job, const Plan& plan, const Topology& topology, const JobForecast& f,
                       int most) {
  int slowest = 0;
  for (int d = 0; d < topology.size(); ++d)
    if (f.train.times(d).end > f.train.times(slowest).end) slowest = d;
  const auto list = explain(plan, "train", job.supernode, topology, slowest);
  std::printf("\nhow the costliest instructions of device %d are reckoned\n", slowest);
  for (std::size_t i = 0; i < list.size() && i < static_cast<std::size_t>(most); ++i)
    std::printf("  %s (%s): %s times %s\n%s", list[i].what.c_str(), list[i].first.c_str(),
                with_separators(list[i].count).c_str(), to_string(list[i].each).c_str(),
                list[i].reckoning.c_str());
}

void print_tables(const RunReport& report, const std::string& machine) {
  const SimulatedUse& use = *report.simulated;
  std::printf("%s\n%s", step_table(use, machine).c_str(), to_text(report).c_str());
  std::printf("\nwhere a step goes (waiting for others is bubble here, exposed comm above)\n%s",
              breakdown_table(use).c_str());
  std::printf("\nwhat a step moves over the levels of the machine\n%s", levels_table(use).c_str());
}

}  // namespace

int simulate_job(const SimArguments& arguments) {
  const LoadedJob loaded = load_job(arguments.job, JobUse::kToBeForeseen);
  const bool rewards = !loaded.job.programs.empty() && !loaded.job.media.learns();
  if (!rewards && !arguments.lengths.empty())
    throw Error(Code::kUsage, "the job has no completions")
        .at("--lengths")
        .legal("with a job that learns from rewards")
        .fix("leave --lengths out");
  if (!arguments.faults.empty()) return simulate_faults(loaded, arguments);
  if (rewards) return simulate_reinforcement(loaded, arguments);
  if (loaded.job.media.learns()) return simulate_omni(loaded, arguments);
  const Job& job = loaded.job;
  try {
    const Machine machine = machine_of(job.supernode);
    const Compiled compiled = compile_with_status(job);
    const Plan& plan = compiled.plan;
    print_warnings(warnings_of(loaded, compiled.training));
    require_fit(loaded, plan);
    const Topology topology = hosts_of(machine, job.supernode.devices);
    const std::vector<int> devices = traced_devices(arguments, topology.size());
    const SimOptions options = options_of(arguments, topology.size());
    const JobForecast f = forecast(job, plan, topology, options);
    if (!arguments.trace.empty()) write_trace(arguments.trace, devices, plan, f.train);
    if (!arguments.chakra.empty()) write_chakra(arguments.chakra, devices, plan, f.train);
    RunReport report = simulated_report(job, plan, f);
    report.simulated = simulated_use(f, machine);
    const auto range = [&] { return range_of(arguments, job.supernode, plan, "train", options); };
    if (arguments.json) {
      report.simulated->range = range();
      std::printf("%s", to_json(report).c_str());
      return 0;
    }
    if (arguments.csv) {
      print_csv(report, f.train);
      return 0;
    }
    print_tables(report, machine.name);
    std::fflush(stdout);
    if (const std::optional<StepRange> known = range()) std::printf("%s", describe_range(*known).c_str());
    if (arguments.explain > 0) print_explanation(job, plan, topology, f, arguments.explain);
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
