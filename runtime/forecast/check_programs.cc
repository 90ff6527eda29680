#include "runtime/forecast/check_programs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/compose/omni.h"
#include "runtime/compose/programs.h"
#include "runtime/device/state_files.h"
#include "runtime/ir/programs.h"
#include "runtime/report/table.h"
#include "runtime/run/device_use.h"
#include "runtime/run/omni_inputs.h"
#include "runtime/run/reinforcement_inputs.h"
#include "runtime/run/resume.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

// Runs of consecutive ranks: "0 to 3, 8".
std::string describe_ranks(const std::vector<int>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1) ++end;
    runs.push_back(end > i ? fmt::format("{} to {}", ranks[i], ranks[end]) : fmt::format("{}", ranks[i]));
    i = end;
  }
  return joined(runs);
}

// Bytes that all devices send in one run of the plan's Program number `program`.
Bytes bytes_sent(const Plan& plan, std::size_t program) {
  Bytes sum{};
  for (std::int64_t d = 0; d < plan.mesh.devices(); ++d)
    for (const Instr& instr : plan.of_device(d).programs[program].instrs) sum += work(instr, plan.mesh).wire;
  return sum;
}

// Adds a row for each Program of the plan but "init": how long it takes in the simulator, and what it sends.
void add_runs(const std::string& program, const Plan& plan, const SupernodeSpec& spec, Table& table) {
  const std::vector<Program>& programs = plan.roles.front().programs;
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i].name != "init")
      table.row({program, programs[i].name, to_string(makespan(plan, programs[i].name, spec)),
                 to_string(bytes_sent(plan, i))});
}

Table table_of_runs() {
  return Table({left("program"), left("Program"), right("time"), right("sent, all devices")});
}

void print_runs(const Table& runs) {
  std::printf("\none run of each Program, simulated alone (hyperrun sim JOB simulates whole steps)\n%s",
              runs.str("  ").c_str());
}

// The first answer: all programs of a device together fit, or compiling would have refused them.
void print_fit(const std::vector<NamedPlan>& plans, const SupernodeSpec& spec) {
  const std::vector<Bytes> peaks = peaks_of_ranks(plans, spec.devices, Tier::kHbm);
  const auto fullest = std::ranges::max_element(peaks);
  std::printf("%s", fmt::format("fits: {} of {} of HBM, the most on device {}\n\n", to_string(*fullest),
                                to_string(spec.hbm), fullest - peaks.begin())
                        .c_str());
}

void print_devices(const std::vector<NamedPlan>& plans, const SupernodeSpec& spec) {
  Table devices({left("device"), right("HBM"), right("budget")});
  const std::vector<Bytes> peaks = peaks_of_ranks(plans, spec.devices, Tier::kHbm);
  for (std::size_t d = 0; d < peaks.size(); ++d)
    if (d == 0 || peaks[d] != peaks[d - 1])  // the first device of a run with equal peaks
      devices.row({fmt::format("{}", d), to_string(peaks[d]), to_string(spec.hbm)});
  std::printf("\nall programs of a device together, where it differs from the device before\n%s",
              devices.str("  ").c_str());
}

std::string names_of_programs(const Plan& plan) {
  std::vector<std::string> names;
  for (const Program& program : plan.roles.front().programs) names.push_back(program.name);
  return joined(names);
}

void print_programs(const Job& job, const std::vector<CompiledProgram>& programs) {
  Table table(
      {left("program"), left("does"), left("devices"), left("mesh"), left("Programs"), right("HBM alone")});
  Table exchanges({left("weights of"), left("go to"), left("devices"), right("sent, all devices")});
  Table runs = table_of_runs();
  for (const CompiledProgram& p : programs) {
    if (!p.weights.empty()) {
      exchanges.row(
          {programs.front().name, p.weights, describe_ranks(p.ranks), to_string(bytes_sent(p.plan, 0))});
      continue;
    }
    add_runs(p.name, p.plan, job.supernode, runs);
    std::string does;
    for (const ProgramSpec& spec : job.programs)
      if (spec.name == p.name) does = spec.does;
    table.row({p.name, does, describe_ranks(p.ranks), describe_mesh(p.plan.mesh), names_of_programs(p.plan),
               to_string(p.alone)});
  }
  const std::vector<NamedPlan> plans = plans_of(programs, job.supernode.devices);
  print_fit(plans, job.supernode);
  std::printf("%s\n%s", table.str("  ").c_str(), exchanges.str("  ").c_str());
  print_devices(plans, job.supernode);
  print_runs(runs);
}

// Checks a job with encoders.
void check_omni(LoadedJob& loaded) {
  Job& job = loaded.job;
  check_inputs(loaded);
  if (!job.run.resume.empty()) job.run.resume = find_checkpoint(job.run.resume);
  const OmniInputs inputs = read_omni_inputs(loaded);
  const OmniPlan plan = compile_omni(job, inputs.most_items());
  Table table({left("program"), left("devices"), left("mesh"), left("Programs"), right("replicas"),
               right("items of a pass"), right("passes at most"), right("HBM alone")});
  const auto row = [&](const CompiledProgram& p, const std::string& replicas, const std::string& items,
                       const std::string& passes) {
    table.row({p.name, describe_ranks(p.ranks), describe_mesh(p.plan.mesh), names_of_programs(p.plan),
               replicas, items, passes, to_string(p.alone)});
  };
  for (const OmniPlan::Encoder& e : plan.encoders)
    row(e.program, std::to_string(e.replicas.size()), std::to_string(e.items), std::to_string(e.passes));
  for (const CompiledProgram& s : plan.stages) row(s, "", "", "");
  const std::vector<NamedPlan> plans = plans_of(plan, job.supernode.devices);
  std::printf("%s: %d devices\n\n", job.name.c_str(), job.supernode.devices);
  print_fit(plans, job.supernode);
  std::printf("%s", table.str("  ").c_str());
  print_devices(plans, job.supernode);
  Table runs = table_of_runs();
  for (const OmniPlan::Encoder& e : plan.encoders)
    add_runs(e.program.name, e.program.plan, job.supernode, runs);
  for (const CompiledProgram& s : plan.stages) add_runs(s.name, s.plan, job.supernode, runs);
  print_runs(runs);
  std::printf("%zu samples to learn from, %zu held back\n", inputs.train->size(), inputs.held_back->size());
  if (!job.run.resume.empty()) std::printf("%s", describe_resumed(job, *check_omni_start(job, plan)).c_str());
}

// The plan of the program that scores; null if there is none.
const Plan* reference_of(const Job& job, const std::vector<CompiledProgram>& programs) {
  const ProgramSpec* const scores = find_program(job, kScores);
  if (scores == nullptr) return nullptr;
  return &std::ranges::find(programs, scores->name, &CompiledProgram::name)->plan;
}

// Checks a job with rewards. A missing file is reported last, after all answers that do not need it.
void check_learning(LoadedJob& loaded) {
  Job& job = loaded.job;
  const std::vector<CompiledProgram> programs = compile_programs(job);
  print_warnings(warnings_of_learner(loaded));
  std::printf("%s: %d devices\n\n", job.name.c_str(), job.supernode.devices);
  print_programs(job, programs);
  std::fflush(stdout);
  check_inputs(loaded);
  if (!job.run.resume.empty()) {
    job.run.resume = find_checkpoint(job.run.resume);
    check_weights(programs.front().plan, job.run.resume);
  }
  const ReinforcementInputs inputs = read_reinforcement_inputs(loaded);
  if (!job.run.resume.empty()) {
    const std::optional<ProgramsState> state =
        check_learning_start(job, programs.front().plan, reference_of(job, programs), inputs);
    std::printf("\n%s", state ? describe_resumed(job, *state).c_str()
                              : fmt::format("begins with the weights of {}\n", job.run.resume).c_str());
  }
  std::printf("%zu tasks to learn from, %zu held back\n", inputs.tasks.train.size(),
              inputs.tasks.held_back.size());
}

}  // namespace

int check_programs(LoadedJob& loaded, const CheckArguments& arguments) {
  const Job& job = loaded.job;
  if (!arguments.memory.empty() || arguments.layouts || arguments.traffic)
    throw Error(Code::kUsage,
                "--memory, --layouts and --traffic are of the step of one program, and the job has several")
        .at("hyperrun check")
        .legal("a job without programs")
        .fix("leave it out");
  try {
    job.media.learns() ? check_omni(loaded) : check_learning(loaded);
  } catch (const JobError&) {
    throw;
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
