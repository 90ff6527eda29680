// The time to plan offloading (docs/offload.md) for steps of one device of some 100,000 instructions, for two
// thirds of the memory that they take.
#include <cstdio>
#include <ctime>
#include <string>

#include "runtime/compile/compile.h"
#include "runtime/compile/materialize_offload.h"
#include "runtime/compile/role_planner.h"
#include "runtime/ir/pipeline.h"
#include "runtime/spec/profile_reader.h"

namespace hyperrun {
namespace {

constexpr double kShare = 0.66;  // share of the memory that it takes without offloading

Job job_of(ModelSpec model, std::vector<MeshAxis> mesh, std::vector<std::string> presets, int micro_batches) {
  Job job;
  job.model = std::move(model);
  job.supernode.machine = load_profile("matrix384", "");
  job.supernode.devices = 1;
  job.training.batch = job.training.micro_batches = micro_batches;
  for (const MeshAxis& axis : mesh) {
    job.supernode.devices *= axis.size;
    if (axis.name == "dp" || axis.name == "ep") job.training.batch *= axis.size;
    if (axis.name != "pp") continue;
    job.parallel.pipeline.axis = "pp";
    job.parallel.pipeline.stages = even_stages(axis.size, 1, job.model.layers);
  }
  job.parallel.mesh = std::move(mesh);
  job.parallel.presets = std::move(presets);
  job.training.lr = 1e-3;
  job.training.precision = kBfloat16;
  return job;
}

ModelSpec llama8b(int sequence) { return {"llama", 32, 4096, 32, 8, 128, 14336, 128256, sequence}; }
ModelSpec llama405b(int sequence) { return {"llama", 126, 16384, 128, 8, 128, 53248, 128256, sequence}; }

// Processor time of this process.
double seconds_of(const auto& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Programs as lowering leaves them: without places and events.
std::vector<Program> unplaced(std::vector<Program> programs) {
  for (Program& program : programs) {
    program.peak = {};
    for (Buffer& b : program.buffers) b.offset = Bytes(0), b.first = b.last = -1;
    for (Instr& instr : program.instrs) instr.waits.clear(), instr.seq = 0;
  }
  return programs;
}

void measure(const std::string& what, Job job) {
  Plan plan;
  const double compiling = seconds_of([&] { plan = compile(job).plan; });
  const Role& role = plan.roles.front();
  std::vector<Program> programs = unplaced(role.programs);
  job.memory.policy = "hyperoffload";
  job.supernode.hbm = Bytes(static_cast<std::int64_t>(kShare * static_cast<double>(role.peak().value)));
  std::vector<OffloadPlan> moves;
  RolePlanner planner(programs, job, job.memory.policy, 0);
  const double planning = seconds_of([&] { moves = planner.fastest(); });
  const PlanningEffort effort = planner.effort();
  const double proving = seconds_of([&] { planner.fits_in(job.supernode.hbm); });
  const double placing = seconds_of([&] { materialize_offload(programs, job, moves); });
  std::size_t evictions = 0;
  for (const OffloadPlan& m : moves) evictions += m.evictions.size();
  std::printf(
      "%s: a step of %zu instructions, %.1f GiB into %.1f\n"
      "  all %zu stages compiled without offloading in %.2f s; one planned in %.2f s (%d plans, %d of which "
      "fit), "
      "its %zu evictions applied and placed in %.2f s, whether the one of all that may move keeps to it told "
      "in %.2f s\n",
      what.c_str(), role.program("train").instrs.size(), static_cast<double>(role.peak().value) / (1 << 30),
      static_cast<double>(job.supernode.hbm.value) / (1 << 30), plan.roles.size(), compiling, planning,
      effort.plans, effort.fitting, evictions, placing, proving);
}

}  // namespace
}  // namespace hyperrun

// planning_bench [WORD]: runs the cases whose names have the word.
int main(int argc, char** argv) {
  using namespace hyperrun;
  const std::string word = argc > 1 ? argv[1] : "";
  const auto measure_if = [&](const std::string& what, const Job& job) {
    if (what.find(word) != std::string::npos) measure(what, job);
  };
  measure_if("Llama-3-8B, dp 8, 1 micro-batch", job_of(llama8b(8192), {{"dp", 8}}, {"dp"}, 1));
  measure_if("Llama-3-8B, dp 8, 80 micro-batches", job_of(llama8b(8192), {{"dp", 8}}, {"dp"}, 80));
  measure_if("Llama-3-8B, pp 4 x dp 2, 256 micro-batches",
             job_of(llama8b(8192), {{"pp", 4}, {"dp", 2}}, {"dp"}, 256));
  measure_if("Llama-3-405B, pp 16 x tp 8, 256 micro-batches",
             job_of(llama405b(8192), {{"pp", 16}, {"tp", 8}}, {"tp", "sp"}, 256));
}
