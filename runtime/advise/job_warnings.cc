#include "runtime/advise/job_warnings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "runtime/advise/warning_remedies.h"
#include "runtime/base/flags.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/pipeline_idle.h"
#include "runtime/shard/idle_axes.h"

namespace hyperrun {
namespace {

void warn_of_idle_axes(const Training& training, const Graph& sharded, std::vector<Warning>& list) {
  const ParallelSpec& parallel = training.job().parallel;
  const Mesh mesh{parallel.mesh};
  for (const AxisId a : mesh.list(idle_axes(sharded, mesh))) {
    const MeshAxis& axis = mesh.axes[static_cast<std::size_t>(a)];
    if (axis.name == parallel.pipeline.axis) continue;
    list.push_back({training.place(fmt::format("parallel.mesh[{}]", a)),
                    fmt::format("the {} devices along \"{}\" do the same work: nothing that is computed is "
                                "split over this axis",
                                axis.size, axis.name),
                    remedy_of_idle(training, sharded, a)});
  }
}

void warn_of_waiting_stages(const Training& training, const Graph& sharded, std::vector<Warning>& list) {
  const ParallelSpec& parallel = training.job().parallel;
  const PipelineSpec& pipeline = parallel.pipeline;
  const auto axis = std::ranges::find(parallel.mesh, pipeline.axis, &MeshAxis::name);
  const std::int32_t cuts = training.job().training.micro_batches;
  if (axis == parallel.mesh.end() || cuts >= axis->size) return;
  const double idle = idle_share(pipeline, axis->size, cuts);
  const char* field = "training.micro_batches";
  list.push_back(
      {training.place(training.has(field) ? field : "parallel.pipeline"),
       fmt::format("{} {} for {} devices of a pipeline: each is idle for {:.0f} % of a step on average", cuts,
                   cuts == 1 ? "micro-batch" : "micro-batches", axis->size, 100 * idle),
       remedy_of_waiting(training, sharded, axis->size)});
}

std::vector<Warning> warnings_at(const Training& training, const Graph& sharded) {
  std::vector<Warning> list;
  warn_of_idle_axes(training, sharded, list);
  warn_of_waiting_stages(training, sharded, list);
  if (!list.empty() && !flags().dump_dir.empty())
    sharded_training(training.job());  // restores the dump that trials have overwritten
  return list;
}

}  // namespace

std::vector<Warning> warnings_of(const LoadedJob& loaded, const Graph& training) {
  return warnings_at(Training(loaded), training);
}

std::vector<Warning> warnings_of_learner(const LoadedJob& loaded) {
  const std::vector<ProgramSpec>& programs = loaded.job.programs;
  const auto learner = std::ranges::find(programs, kTrains, &ProgramSpec::does);
  const Training training(loaded, static_cast<std::size_t>(learner - programs.begin()));
  return warnings_at(training, sharded_training(training.job()));
}

void print_warnings(const std::vector<Warning>& warnings) {
  for (const Warning& warning : warnings) std::fprintf(stderr, "%s", to_string(warning).c_str());
}

}  // namespace hyperrun
