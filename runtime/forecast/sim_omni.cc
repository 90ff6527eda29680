#include "runtime/forecast/sim_omni.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "runtime/compose/omni.h"
#include "runtime/forecast/range.h"
#include "runtime/forecast/sim_programs.h"
#include "runtime/omni/simulate.h"
#include "runtime/report/describe_range.h"
#include "runtime/report/omni.h"
#include "runtime/report/trace.h"
#include "runtime/run/omni_inputs.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kSteps = 16;

std::int64_t steps_of(const Job& job) {
  return job.training.steps == 0 ? kSteps : std::min<std::int64_t>(kSteps, job.training.steps);
}

std::vector<OmniForecast::Run> runs_of(const OmniPlan& plan, const OmniTimes& times) {
  std::vector<OmniForecast::Run> runs;
  const auto add = [&](const CompiledProgram& p, std::size_t devices, const OmniTask& task) {
    runs.push_back(
        {p.name, std::string(name(task.kind)), static_cast<std::int64_t>(devices), times.of(task)});
  };
  for (std::size_t e = 0; e < plan.encoders.size(); ++e) {
    const OmniPlan::Encoder& of = plan.encoders[e];
    const auto i = static_cast<std::int32_t>(e);
    for (const OmniKind kind : {OmniKind::kEncode, OmniKind::kFeatureGradients, OmniKind::kEncodeBackward})
      add(of.program, of.replicas.front().size(), {kind, i});
    if (clips(plan)) add(of.program, of.program.ranks.size(), {OmniKind::kNorm, i});
    add(of.program, of.program.ranks.size(), {OmniKind::kUpdate, i});
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const CompiledProgram& of = plan.stages[s];
    const auto i = static_cast<std::int32_t>(s);
    const bool last = s + 1 == plan.stages.size();
    if (s == 0) add(of, of.ranks.size(), {OmniKind::kFeatures, 0, 0});
    if (s > 0) add(of, of.ranks.size(), {OmniKind::kStream, -1, i});
    if (!last) add(of, of.ranks.size(), {OmniKind::kForward, -1, i});
    if (!last) add(of, of.ranks.size(), {OmniKind::kStreamGradient, -1, i});
    add(of, of.ranks.size(), {OmniKind::kBackward, -1, i});
    if (clips(plan)) add(of, of.ranks.size(), {OmniKind::kNorm, -1, i});
    add(of, of.ranks.size(), {OmniKind::kUpdate, -1, i});
  }
  return runs;
}

std::vector<OmniForecast::Load> loads_of(const OmniInputs& inputs, std::int64_t steps) {
  std::vector<OmniForecast::Load> loads;
  for (std::size_t e = 0; e < inputs.encoders.size(); ++e) {
    OmniForecast::Load load{inputs.encoders[e], INT64_MAX, 0, 0};
    std::int64_t sum = 0, count = 0;
    for (std::int64_t s = 0; s < steps; ++s)
      for (const std::vector<std::int64_t>& items : inputs.train->loads(s)) {
        load.least = std::min(load.least, items[e]);
        load.most = std::max(load.most, items[e]);
        sum += items[e];
        ++count;
      }
    load.mean = static_cast<double>(sum) / static_cast<double>(count);
    loads.push_back(load);
  }
  return loads;
}

void write_trace(const std::string& file, const OmniPlan& plan, std::int64_t devices,
                 OmniSimulation simulation) {
  std::ranges::stable_sort(simulation.spans, {}, &OmniSpan::begin);
  TraceWriter trace(file);
  for (std::int32_t d = 0; d < devices; ++d) trace.device(d, "simulated", std::array{TraceStream::kProgram});
  for (const OmniSpan& span : simulation.spans) {
    const OmniTask& t = span.task;
    const std::string& program = t.stage >= 0
                                     ? plan.stages[static_cast<std::size_t>(t.stage)].name
                                     : plan.encoders[static_cast<std::size_t>(t.encoder)].program.name;
    for (const std::int32_t rank : span.ranks)
      trace.slice(
          {rank, TraceStream::kProgram, program + " " + describe(t), program, span.begin, span.end, {}, {}});
  }
  trace.close();
}

void simulate(const LoadedJob& loaded, const SimArguments& arguments) {
  const Job& job = loaded.job;
  const OmniInputs inputs = read_omni_inputs(loaded);
  const OmniPlan plan = compile_omni(job, inputs.most_items());
  const OmniTimes times = task_times(plan, job);
  std::vector<std::int64_t> items_of_pass;
  for (const OmniPlan::Encoder& e : plan.encoders) items_of_pass.push_back(e.items);
  OmniForecast f{job.name, job.supernode.devices, steps_of(job), {}, {}, {}, {}};
  std::vector<OmniPasses> steps;
  for (std::int64_t s = 0; s < f.steps; ++s)
    steps.push_back(passes_of(inputs.train->loads(s), items_of_pass));
  f.loads = loads_of(inputs, f.steps);
  f.runs = runs_of(plan, times);
  for (const std::string_view order : {kStaticOrder, kDynamicOrder}) {
    OmniSimulation simulation = simulate_steps(plan, times, job.supernode.devices, order, steps);
    f.orders.push_back({std::string(order), simulation.step(), simulation.bubble()});
    if (order == job.media.order && !arguments.trace.empty())
      write_trace(arguments.trace, plan, f.devices, std::move(simulation));
  }
  if (!arguments.json) {
    std::printf("%s", to_text(f).c_str());
    print_trace(arguments, fmt::format(" (order: {})", job.media.order));
    std::fflush(stdout);
  }
  f.range = range_of(arguments, job.supernode, [&](const SupernodeSpec& there) {
    Job other = job;
    other.supernode = there;
    return simulate_steps(plan, task_times(plan, other), there.devices, job.media.order, steps).step();
  });
  std::printf("%s", arguments.json ? to_json(f).c_str() : f.range ? describe_range(*f.range).c_str() : "");
}

}  // namespace

int simulate_omni(const LoadedJob& loaded, const SimArguments& arguments) {
  return simulate_tasks(loaded, arguments, [&] { simulate(loaded, arguments); });
}

}  // namespace hyperrun
