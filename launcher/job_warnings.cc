#include "launcher/job_warnings.h"

#include <algorithm>
#include <cstdio>

#include "launcher/paste.h"
#include "runtime/base/format.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/pipeline_idle.h"
#include "runtime/ir/presets.h"
#include "runtime/ir/programs.h"
#include "runtime/shard/idle_axes.h"
#include "runtime/spec/job_check.h"

namespace hyperrun {
namespace {

const Preset* preset_called(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &Preset::name);
  return found == kPresets.end() ? nullptr : &*found;
}

// The preset that is there to use the axis: the one of its name, else the first that needs it.
const Preset* preset_for(std::string_view axis) {
  if (const Preset* same = preset_called(axis)) return same;
  const auto needs = [&](const Preset& p) {
    return !p.any_axis && std::ranges::find(p.rules, axis, &PresetRule::axis) != p.rules.end();
  };
  const auto found = std::ranges::find_if(kPresets, needs);
  return found == kPresets.end() ? nullptr : &*found;
}

std::string add_preset(const ParallelSpec& parallel, std::string_view name) {
  std::vector<std::string> presets{std::string(name)};
  presets.insert(presets.end(), parallel.presets.begin(), parallel.presets.end());
  return paste("parallel", presets_line(presets));
}

// The axes that split the batch, and this one.
std::string split_batch(const Graph& training, const Mesh& mesh, AxisId axis) {
  AxisList axes = training.layouts[training.find("ids").index()].dims.front();
  axes.push_back(axis);
  std::string names;
  for (const AxisId a : axes)
    names += (names.empty() ? "\"" : ", \"") + mesh.axes[static_cast<std::size_t>(a)].name + "\"";
  std::string lines;
  for (const char* tensor : {"ids", "targets"})
    lines += (lines.empty() ? "" : " ") + ("rules { tensor: \"" + std::string(tensor)) +
             "\" dims { dim: \"batch\" axes: [" + names + "] } }";
  return paste("parallel", lines);
}

std::string remedy_of_idle(const ParallelSpec& parallel, const Graph& training, const Mesh& mesh, AxisId a) {
  const std::string& axis = mesh.axes[static_cast<std::size_t>(a)].name;
  if (axis == "pp" && parallel.pipeline.axis.empty()) return paste("parallel", "pipeline { axis: \"pp\" }");
  const Preset* preset = preset_for(axis);
  const bool given = preset != nullptr && std::ranges::count(parallel.presets, preset->name) > 0;
  if (preset != nullptr && !given) return add_preset(parallel, preset->name);
  return split_batch(training, mesh, a);
}

// A training, and where its fields stand: those of one of several programs in a block of its own.
struct Place {
  const Job& job;
  const JobSource& source;
  std::string parallel;
};

void warn_of_idle_axes(const Place& at, const Graph& training, std::vector<Warning>& list) {
  const ParallelSpec& parallel = at.job.parallel;
  const Mesh mesh{parallel.mesh};
  for (const AxisId a : mesh.list(idle_axes(training, mesh))) {
    const MeshAxis& axis = mesh.axes[static_cast<std::size_t>(a)];
    if (axis.name == parallel.pipeline.axis) continue;
    list.push_back({at.source.place(at.parallel + ".mesh[" + std::to_string(a) + "]"),
                    "the " + std::to_string(axis.size) + " devices along \"" + axis.name +
                        "\" do the same work: nothing that is computed is split over this axis",
                    remedy_of_idle(parallel, training, mesh, a)});
  }
}

std::string percent(double share) { return format("%.0f %%", 100 * share); }

// The fewest micro-batches that fill the stages and that the batch can be cut into; where there are none, of
// the least batch that can.
std::string more_micro_batches(const Job& job, int devices) {
  const std::int64_t replicas = data_parallel_size(job.parallel), batch = job.training.batch;
  std::int64_t cuts = devices;
  while (cuts * replicas <= batch && batch % (cuts * replicas) != 0) ++cuts;
  const bool enough = cuts * replicas <= batch;
  if (!enough) cuts = devices;
  const double idle = idle_share(job.parallel.pipeline, devices, static_cast<int>(cuts));
  return paste("training", (enough ? "" : "batch: " + std::to_string(cuts * replicas) + " ") +
                               "micro_batches: " + std::to_string(cuts)) +
         " (idle for " + percent(idle) + ")";
}

void warn_of_waiting_stages(const Place& at, std::vector<Warning>& list) {
  const PipelineSpec& pipeline = at.job.parallel.pipeline;
  const auto axis = std::ranges::find(at.job.parallel.mesh, pipeline.axis, &MeshAxis::name);
  const std::int32_t cuts = at.job.training.micro_batches;
  if (axis == at.job.parallel.mesh.end() || cuts >= axis->size) return;
  const bool given = at.source.has("training.micro_batches");
  list.push_back({at.source.place(given ? "training.micro_batches" : at.parallel + ".pipeline"),
                  std::to_string(cuts) + (cuts == 1 ? " micro-batch" : " micro-batches") + " for " +
                      std::to_string(axis->size) + " devices of a pipeline: each is idle for " +
                      percent(idle_share(pipeline, axis->size, cuts)) + " of a step on average",
                  more_micro_batches(at.job, axis->size)});
}

std::vector<Warning> warnings_at(const Place& at, const Graph& training) {
  std::vector<Warning> list;
  warn_of_idle_axes(at, training, list);
  warn_of_waiting_stages(at, list);
  return list;
}

}  // namespace

std::vector<Warning> warnings_of(const LoadedJob& loaded, const Graph& training) {
  return warnings_at({loaded.job, loaded.source, "parallel"}, training);
}

std::vector<Warning> warnings_of_learner(const LoadedJob& loaded) {
  const std::vector<ProgramSpec>& programs = loaded.job.programs;
  const auto learner = std::ranges::find(programs, kTrains, &ProgramSpec::does);
  const Job job = job_of(loaded.job, *learner);
  const std::string block = "programs[" + std::to_string(learner - programs.begin()) + "]";
  return warnings_at({job, loaded.source, block + ".parallel"}, sharded_training(job));
}

void tell(const std::vector<Warning>& warnings) {
  for (const Warning& warning : warnings) std::fprintf(stderr, "%s", to_string(warning).c_str());
}

}  // namespace hyperrun
