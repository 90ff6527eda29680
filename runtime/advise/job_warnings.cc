#include "runtime/advise/job_warnings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "runtime/advise/paste.h"
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

// Whether some devices hold the same part of a weight or of a moment.
bool repeats_state(const Graph& sharded, const Job& job) {
  const Mesh mesh{job.parallel.mesh};
  const AxisId stages = mesh.find(job.parallel.pipeline.axis);
  if (stages >= 0 && job.model.tied_head) return true;  // the first and the last stage have the embedding
  for (std::size_t t = 0; t < sharded.tensors.size(); ++t) {
    if (sharded.tensors[t].saved.name.empty()) continue;
    const AxisSet split = sharded.layouts[t].split_axes();
    for (AxisId a = 0; a < mesh.rank(); ++a)
      if (a != stages && mesh.size(a) > 1 && !split.has(a)) return true;
  }
  return false;
}

void warn_of_nothing_to_compare(const Training& training, const Graph& sharded, std::vector<Warning>& list) {
  if (training.job().run.integrity.every == 0 || repeats_state(sharded, training.job())) return;
  list.push_back({training.place("run.integrity.every"),
                  "nothing is compared: no two devices hold the same part of a weight or a moment",
                  paste("run", "integrity { checksums: true }", {"integrity"})});
}

std::vector<Warning> warnings_at(const Training& training, const Graph& sharded) {
  std::vector<Warning> list;
  warn_of_idle_axes(training, sharded, list);
  warn_of_waiting_stages(training, sharded, list);
  warn_of_nothing_to_compare(training, sharded, list);
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
