// hyperrun check JOB: the plan, without MPI.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "launcher/check_programs.h"
#include "launcher/commands.h"
#include "launcher/compiling.h"
#include "launcher/recorder.h"
#include "launcher/redistributions.h"
#include "launcher/resume.h"
#include "launcher/role_words.h"
#include "launcher/step_memory.h"
#include "launcher/text_data.h"
#include "launcher/writable.h"
#include "runtime/advise/fit.h"
#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/shrink.h"
#include "runtime/ir/describe_layout.h"
#include "runtime/ir/release.h"
#include "runtime/ir/stats.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/table.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

std::string shape_text(const Graph& graph, TensorId t) {
  std::string text;
  for (DimId d : graph[t].dims)
    text += (text.empty() ? "" : " ") + graph[d].name + "=" + std::to_string(graph[d].size);
  if (graph[t].dtype == DType::kBF16) text += " bf16";
  return text.empty() ? "scalar" : text;
}

void print_layouts(const Graph& graph, const Mesh& mesh) {
  Table table({left("tensor"), left("shape"), left("layout"), right("count")});
  std::vector<std::vector<std::string>> rows;
  std::map<std::vector<std::string>, int> counts;
  for (const Node& node : graph.nodes)
    for (TensorId t : node.outputs) {
      if (graph[t].updates.valid() || graph[t].cls == TensorClass::kExchanged) continue;
      std::vector<std::string> row{without_numbers(graph[t].name), shape_text(graph, t),
                                   describe_layout(graph, t, mesh)};
      if (counts[row]++ == 0) rows.push_back(row);
    }
  for (const std::vector<std::string>& row : rows)
    table.row({row[0], row[1], row[2], std::to_string(counts[row])});
  std::printf("\nlayouts\n%s", table.str("  ").c_str());
}

// " of pp 3 (layers 6 to 7)"; nothing where all devices do the same.
std::string of_stage(const Job& job, const Plan& plan, std::size_t role) {
  return plan.roles.size() > 1 ? " of " + role_words(job, role) : "";
}

void print_memory(const Job& job, const Role& role, const std::string& of) {
  Table table({left("category"), right("bytes"), right("")});
  const DeviceReport planned = planned_use(job, role);
  Bytes gaps = role.peak();
  for (const CategoryUse& use : planned.tiers[0].categories) {
    table.row({use.category, with_separators(use.planned.value), to_string(use.planned)});
    gaps -= use.planned;
  }
  if (gaps.value > 0) table.row({"gaps between", with_separators(gaps.value), to_string(gaps)});
  table.rule();
  table.row({"peak", with_separators(role.peak().value), to_string(role.peak())});
  table.row({"budget", with_separators(job.supernode.hbm.value), to_string(job.supernode.hbm)});
  std::printf(
      "\nHBM of each device%s, by category where the most is live with one instruction after the other\n%s",
      of.c_str(), table.str("  ").c_str());
}

// What lies beyond HBM, and what a step moves there and back.
void print_beyond(const Job& job, const Role& role, const std::string& of) {
  Table table({left("tier"), right("of a device"), right("of the job's"), left("transfer"), right("times"),
               right("bytes a step")});
  for (const auto& [tier, budget] :
       {std::pair{Tier::kPool, job.supernode.pool}, {Tier::kFlash, job.supernode.flash}}) {
    if (role.peak(tier).value == 0) continue;
    std::map<std::string, std::pair<std::int64_t, Bytes>> moves;
    for (const Instr& instr : role.program("train").instrs)
      if (beyond_hbm(instr.op) == tier) {
        auto& [times, bytes] = moves[transfer_kind(instr.op).collective];
        ++times;
        bytes += instr.in[0].bytes;
      }
    std::string first(name(tier)), peak = to_string(role.peak(tier)), whole = to_string(budget);
    for (const auto& [transfer, sum] : moves) {
      table.row({first, peak, whole, transfer, with_separators(sum.first), to_string(sum.second)});
      first = peak = whole = "";
    }
  }
  if (!table.empty())
    std::printf("\nbeyond HBM%s, policy \"%s\"\n%s", of.c_str(), job.memory.policy.c_str(),
                table.str("  ").c_str());
}

// What is cut into tiles is told of in one piece.
std::vector<std::vector<ListedStep>> redistributions_of(const Job& job, const Compiled& compiled) {
  if (job.parallel.tiles == 1) return list_redistributions(compiled, job);
  Job whole = job;
  whole.parallel.tiles = 1;
  return list_redistributions(compile_telling(whole), whole);
}

// The number by which a run is announced and refused.
void print_fullest(const Job& job, const Plan& plan) {
  if (plan.roles.size() == 1) return;
  const auto peak = [](const Role& role) { return role.peak(); };
  const auto fullest = std::ranges::max_element(plan.roles, {}, peak);
  std::printf("\npeak of the job: %s of %s, in %s\n", to_string(plan.peak()).c_str(),
              to_string(job.supernode.hbm).c_str(),
              role_words(job, static_cast<std::size_t>(fullest - plan.roles.begin())).c_str());
}

// What the devices of each role do, told of the first of them.
void print_roles(const Job& job, const Compiled& compiled, const StepMemory* memory) {
  const Plan& plan = compiled.plan;
  const auto redistributions = redistributions_of(job, compiled);
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const Program& train = plan.roles[r].program("train");
    const int device = plan.mesh.group(0, plan.role_axes)[r];
    const std::string of = of_stage(job, plan, r);
    std::printf("\n%zu instructions a step%s\n", train.instrs.size(), of.c_str());
    std::printf("\nredistributions%s, with the bytes that device %d moves and their reasons\n%s", of.c_str(),
                device, redistribution_table(redistributions[r]).c_str());
    print_memory(job, plan.roles[r], of);
    if (memory) std::printf("\n%s", memory->table(r).c_str());
    print_beyond(job, plan.roles[r], of);
  }
  print_fullest(job, plan);
}

// Before what does not fit is refused: that is when one wants to see it.
void draw(const StepMemory& memory, const std::string& file) try {
  write_file_atomically(file, memory.svg());
  std::printf("\nHBM over the simulated step: %s\n", file.c_str());
} catch (const Error& e) {
  throw at_option("--memory", e);
}

// Of what is refused the plan is freed on all cores.
void require_room_for(const LoadedJob& loaded, Plan& plan) try { require_fit(loaded, plan); } catch (...) {
  release(plan);
  throw;
}

// What is executed in the place of a job with `shrink`.
Scaled check_scale(const Job& job, Bytes peak) {
  Scaled scaled = compile_to_scale(job, peak);
  std::printf(
      "\nexecuted to scale by a smaller model: %d layers, hidden %d, vocabulary %d, %d x %d tokens; HBM %s "
      "of %s\n",
      scaled.job.model.layers, scaled.job.model.hidden, scaled.job.model.vocab, scaled.job.training.batch,
      scaled.job.model.sequence, to_string(scaled.plan.peak()).c_str(),
      to_string(scaled.job.supernode.hbm).c_str());
  return scaled;
}

// What a run would start from: a checkpoint, its text.
void check_start(Scaled executed) {
  Job& job = executed.job;
  if (!job.run.resume.empty()) {
    job.run.resume = find_checkpoint(job.run.resume);
    std::printf("\n%s", start_words(job, executed.plan, check_resume(job, executed.plan)).c_str());
  }
  if (!job.data.corpus.empty()) encode_prompt(job, prepare_text(job).tokenizer);
}

}  // namespace

int check_job(const CheckArguments& arguments) {
  if (!arguments.memory.empty()) require_writable_svg(arguments.memory, "--memory");
  LoadedJob loaded = load_job(arguments.job, JobUse::kToBeForeseen);
  set_resume(loaded.job, arguments.resume);
  const Job& job = loaded.job;
  if (!job.programs.empty()) return check_programs(loaded, arguments);
  try {
    Compiled compiled = compile_telling(job);
    tell(warnings_of(loaded, compiled.training));
    std::printf("%s: %d devices, mesh", job.name.c_str(), job.supernode.devices);
    for (const MeshAxis& axis : job.parallel.mesh) std::printf(" %s=%d", axis.name.c_str(), axis.size);
    std::printf("\n");
    print_layouts(compiled.training, compiled.plan.mesh);
    std::optional<StepMemory> memory;
    if (!arguments.memory.empty()) memory.emplace(job, compiled.plan);
    print_roles(job, compiled, memory ? &*memory : nullptr);
    if (memory) draw(*memory, arguments.memory);
    require_room_for(loaded, compiled.plan);
    const Scaled executed = job.run.shrink == ShrinkSpec{} ? Scaled{job, compiled.plan, {}}
                                                           : check_scale(job, compiled.plan.peak());
    check_inputs(loaded);  // what is missing hides nothing of what can be told without it
    check_start(executed);
  } catch (const JobError&) {  // several, each with its line
    std::fflush(stdout);
    throw;
  } catch (const Error& e) {
    std::fflush(stdout);
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
