// hyperrun sim JOB --generate: simulates the passes of a generation.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "runtime/advise/fit.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/forecast/range.h"
#include "runtime/forecast/sim.h"
#include "runtime/report/describe_range.h"
#include "runtime/report/generation.h"
#include "runtime/report/table.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

// Simulates one pass. The exposed times and the bubble are those of the device that waits longest.
PassReport forecast(const std::string& name, std::int64_t sequences, std::int64_t tokens, const Job& job,
                    const Plan& plan, const Topology& topology) {
  const SimResult result = simulate(plan, name, job.supernode, topology);
  const Breakdown& longest = *std::ranges::max_element(
      result.parts, {}, [](const Breakdown& b) { return b.communication + b.transfer + b.bubble; });
  PassReport pass{.name = name,
                  .sequences = sequences,
                  .tokens = tokens,
                  .time = result.makespan,
                  .exposed_communication = longest.communication,
                  .exposed_transfer = longest.transfer,
                  .bubble = longest.bubble,
                  .peaks = {},
                  .range = {}};
  for (const Role& role : plan.roles)
    for (std::size_t t = 0; t < kTiers; ++t)
      pass.peaks[t] = std::max(pass.peaks[t], role.program(name).peak[t]);
  return pass;
}

std::string share(Nanos part, Nanos whole) {
  return fmt::format("{:.1f}%", 100 * static_cast<double>(part.value) / static_cast<double>(whole.value));
}

void print_table(const std::array<PassReport, 2>& passes, const GenerationShape& shape,
                 const Machine& machine) {
  Table table({left("simulated, " + machine.name), right(passes[0].name), right(passes[1].name)});
  const auto row = [&](const char* what, auto of) { table.row({what, of(passes[0]), of(passes[1])}); };
  row("a pass", [](const PassReport& f) { return to_string(f.time); });
  row("takes", [](const PassReport& f) {
    return fmt::format("{} x {} tokens", with_separators(f.sequences), with_separators(f.tokens));
  });
  row("tokens/s", [](const PassReport& f) { return with_separators(std::llround(f.tokens_per_second())); });
  row("exposed comm", [](const PassReport& f) { return share(f.exposed_communication, f.time); });
  row("exposed transfer", [](const PassReport& f) { return share(f.exposed_transfer, f.time); });
  row("bubble", [](const PassReport& f) { return share(f.bubble, f.time); });
  for (const Tier tier : {Tier::kHbm, Tier::kPool, Tier::kFlash})
    row(fmt::format("{} of a device", name(tier)).c_str(),
        [&](const PassReport& f) { return to_string(f.peaks[index_of(tier)]); });
  std::printf("%ssequences are as long as they may become: %s positions\n", table.str().c_str(),
              with_separators(shape.context).c_str());
}

std::string describe_ranges(const std::array<PassReport, 2>& passes) {
  if (!passes.front().range) return "";
  std::string text = describe_evidence(*passes.front().range);
  for (const PassReport& pass : passes) text += describe_spread(*pass.range, "a pass of " + pass.name);
  return text;
}

}  // namespace

int simulate_generation(const SimArguments& arguments) {
  const LoadedJob loaded = load_job(arguments.job, JobUse::kToBeForeseen);
  refuse_programs(loaded);
  const Job& job = loaded.job;
  try {
    const Machine machine = machine_of(job.supernode);
    const GenerationShape shape = generation_shape(job);
    const Plan plan = compile_generation(job).plan;
    require_generation_fit(loaded, plan);
    const Topology topology = hosts_of(machine, job.supernode.devices);
    std::array passes{forecast("prefill", shape.prompts, shape.chunk, job, plan, topology),
                      forecast("decode", shape.slots, 1, job, plan, topology)};
    if (!arguments.json) print_table(passes, shape, machine);
    for (PassReport& pass : passes) pass.range = range_of(arguments, job.supernode, plan, pass.name);
    std::printf("%s", arguments.json ? to_json(passes).c_str() : describe_ranges(passes).c_str());
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
