// hyperrun check JOB: prints whether the job fits, how long a step takes, where the time goes and what is
// sent.
#include "runtime/forecast/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "runtime/advise/fit.h"
#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/compile/compile.h"
#include "runtime/compose/shrink.h"
#include "runtime/cost/groups.h"
#include "runtime/forecast/check_programs.h"
#include "runtime/forecast/compile_with_status.h"
#include "runtime/forecast/describe_role.h"
#include "runtime/forecast/layouts_table.h"
#include "runtime/forecast/memory_tables.h"
#include "runtime/forecast/redistributions.h"
#include "runtime/forecast/simulated_report.h"
#include "runtime/forecast/step_memory.h"
#include "runtime/forecast/step_tables.h"
#include "runtime/forecast/traffic_table.h"
#include "runtime/ir/release.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/writable.h"
#include "runtime/run/resume.h"
#include "runtime/run/text_data.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

void print(const std::string& text) { std::printf("%s", text.c_str()); }

// A role as part of a title: " of pp 3 (layers 6 to 7)". Empty if there is one role.
std::string of_role(const Job& job, const Plan& plan, std::size_t role) {
  return plan.roles.size() > 1 ? " of " + describe_role(job, role) : "";
}

std::size_t fullest_role(const Plan& plan) {
  const auto fullest = std::ranges::max_element(plan.roles, {}, [](const Role& role) { return role.peak(); });
  return static_cast<std::size_t>(fullest - plan.roles.begin());
}

// The need of a tier beyond HBM, all devices together, beside its budget: ", 21.8 MiB of 8.00 MiB of
// the pool".
std::string describe_tier(const Plan& plan, Tier tier, Bytes budget) {
  const Bytes needed = plan.of_all_devices(tier);
  if (needed.value == 0) return "";
  return fmt::format(", {} of {} of {}", to_string(needed), to_string(budget),
                     tier == Tier::kPool ? "the pool" : name(tier));
}

// A run is refused for the same tiers.
bool fits(const Job& job, const Plan& plan) {
  const SupernodeSpec& spec = job.supernode;
  return plan.peak() <= spec.hbm && plan.of_all_devices(Tier::kPool) <= spec.pool &&
         plan.of_all_devices(Tier::kFlash) <= spec.flash;
}

// The first answer: whether the job fits, and what fills HBM.
void print_fit(const Job& job, const Plan& plan) {
  const SupernodeSpec& spec = job.supernode;
  const std::size_t fullest = fullest_role(plan);
  const std::string where = plan.roles.size() > 1 ? ", the most in " + describe_role(job, fullest) : "";
  print(fmt::format("{}: {} of {} of HBM{}{}{}\n", fits(job, plan) ? "fits" : "does not fit",
                    to_string(plan.peak()), to_string(spec.hbm), where,
                    describe_tier(plan, Tier::kPool, spec.pool),
                    describe_tier(plan, Tier::kFlash, spec.flash)));
  print(fmt::format("\nHBM of each device{}, by category at the fullest moment\n{}",
                    of_role(job, plan, fullest), hbm_table(job, plan.roles[fullest])));
  if (plan.roles.size() > 1) print(fmt::format("\npeak of each stage\n{}", role_peaks_table(job, plan)));
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    if (const std::string table = transfers_table(job, plan.roles[r]); !table.empty())
      print(
          fmt::format("\nbeyond HBM{}, policy \"{}\"\n{}", of_role(job, plan, r), job.memory.policy, table));
}

// The second and third answers: how long a step takes, where the time goes, and what is sent.
void print_step(const Job& job, const Plan& plan) {
  const Machine machine = machine_of(job.supernode);
  const JobForecast f = forecast(job, plan, hosts_of(machine, job.supernode.devices));
  const SimulatedUse use = simulated_use(f, machine);
  if (!fits(job, plan)) print("\nthe step below is simulated as if the job fitted\n");
  print(fmt::format("\n{}\nwhere the step goes, by device\n{}", step_table(use, machine.name),
                    breakdown_table(use)));
  if (const std::string table = traffic_table(f.train); !table.empty())
    print(fmt::format("\nwhat a step moves\n{}", table));
}

// The redistributions of the job without tiles: a collective that is cut into tiles is listed as one.
std::vector<std::vector<ListedStep>> redistributions_of(const Job& job, const Compiled& compiled) {
  if (job.parallel.tiles == 1) return list_redistributions(compiled, job);
  Job whole = job;
  whole.parallel.tiles = 1;
  return list_redistributions(compile_with_status(whole), whole);
}

// Prints the redistributions of each role's first device.
void print_redistributions(const Job& job, const Compiled& compiled) {
  const Plan& plan = compiled.plan;
  const auto redistributions = redistributions_of(job, compiled);
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const std::string of = of_role(job, plan, r);
    print(
        fmt::format("\nredistributions{}, with the bytes that device {} moves and their reasons; {} "
                    "instructions a step\n{}",
                    of, plan.mesh.group(0, plan.role_axes)[r], plan.roles[r].program("train").instrs.size(),
                    redistribution_table(redistributions[r])));
  }
}

// Draws the picture. It is also drawn for a job that does not fit, when it is most useful.
void draw(const StepMemory& memory, const std::string& file) try {
  write_file_atomically(file, memory.svg());
  std::printf("\nHBM over the simulated step: %s\n", file.c_str());
} catch (const Error& e) {
  throw at_option("--memory", e);
}

void print_step_memory(const Job& job, const Plan& plan, const std::string& file) {
  const StepMemory memory(job, plan);
  for (std::size_t r = 0; r < plan.roles.size(); ++r) print("\n" + memory.table(r));
  draw(memory, file);
}

// Names the options that print further answers.
void print_hints(const CheckArguments& arguments) {
  std::vector<std::string> hints;
  if (!arguments.layouts) hints.emplace_back("--layouts shows which axes split each tensor");
  if (!arguments.traffic) hints.emplace_back("--traffic shows each redistribution with its reason");
  if (!hints.empty()) print(fmt::format("\n{}\n", joined(hints, "; ")));
}

// Refuses a plan that does not fit. A refused plan is freed on all cores, which is faster than its
// destructor.
void require_room_for(const LoadedJob& loaded, Plan& plan) try { require_fit(loaded, plan); } catch (...) {
  release(plan);
  throw;
}

// The small job that is executed in place of a job with run.shrink.
Scaled check_scale(const Job& job, Bytes peak) {
  Scaled scaled = compile_to_scale(job, peak);
  const ModelSpec& m = scaled.job.model;
  print(
      fmt::format("\nexecuted to scale by a smaller model: {} layers, hidden {}, vocabulary {}, {} x {} "
                  "tokens; HBM {} of {}\n",
                  m.layers, m.hidden, m.vocab, scaled.job.training.batch, m.sequence,
                  to_string(scaled.plan.peak()), to_string(scaled.job.supernode.hbm)));
  return scaled;
}

// Reads the inputs of a run: its checkpoint and its text.
void check_start(Scaled executed) {
  Job& job = executed.job;
  if (!job.run.resume.empty()) {
    job.run.resume = find_checkpoint(job.run.resume);
    std::printf("\n%s", describe_start(job, executed.plan, check_resume(job, executed.plan)).c_str());
  }
  if (job.data.corpus.empty()) return;
  const TextData text = prepare_text(job);
  print(describe_corpus(job, text));
  encode_prompt(job, text.tokenizer);
}

void print_answers(const CheckArguments& arguments, const LoadedJob& loaded, const Compiled& compiled) {
  const Job& job = loaded.job;
  std::vector<std::string> axes;
  for (const MeshAxis& axis : job.parallel.mesh) axes.push_back(fmt::format("{}={}", axis.name, axis.size));
  const int devices = job.supernode.devices;
  print(fmt::format("{}: {} device{}{}{}\n\n", job.name, devices, devices == 1 ? "" : "s",
                    axes.empty() ? "" : ", mesh ", joined(axes, " ")));
  print_fit(job, compiled.plan);
  print_step(job, compiled.plan);
  if (!arguments.memory.empty()) print_step_memory(job, compiled.plan, arguments.memory);
  if (arguments.layouts) print("\nlayouts\n" + layouts_table(compiled.training, compiled.plan.mesh));
  if (arguments.traffic) print_redistributions(job, compiled);
  print_hints(arguments);
  std::fflush(stdout);
}

}  // namespace

int check_job(const CheckArguments& arguments) {
  if (!arguments.memory.empty()) require_writable_svg(arguments.memory, "--memory");
  LoadedJob loaded = load_job(arguments.job, JobUse::kToBeForeseen);
  set_resume(loaded.job, arguments.resume);
  const Job& job = loaded.job;
  if (!job.programs.empty()) return check_programs(loaded, arguments);
  try {
    Compiled compiled = compile_with_status(job);
    print_warnings(warnings_of(loaded, compiled.training));
    print_answers(arguments, loaded, compiled);
    require_room_for(loaded, compiled.plan);
    const Scaled executed = job.run.shrink == ShrinkSpec{} ? Scaled{job, compiled.plan, {}}
                                                           : check_scale(job, compiled.plan.peak());
    check_inputs(loaded);  // last, so that a missing file hides no other answer
    check_start(executed);
  } catch (const JobError&) {  // holds several errors, each with its line
    std::fflush(stdout);
    throw;
  } catch (const Error& e) {
    std::fflush(stdout);
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
