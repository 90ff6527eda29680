#include "runtime/advise/warning_remedies.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "runtime/advise/paste.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/pipeline_idle.h"
#include "runtime/ir/presets.h"
#include "runtime/ir/programs.h"
#include "runtime/shard/idle_axes.h"
#include "runtime/spec/job_check.h"
#include "runtime/spec/job_check_programs.h"

namespace hyperrun {
namespace {

constexpr const char* kCutOff = "the search for more was cut off after 10 s";

const Preset* preset_called(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &Preset::name);
  return found == kPresets.end() ? nullptr : &*found;
}

// The preset that uses the axis: the one of its name, otherwise the first that needs it.
const Preset* preset_for(std::string_view axis) {
  if (const Preset* same = preset_called(axis)) return same;
  const auto needs = [&](const Preset& p) {
    return !p.any_axis && std::ranges::find(p.rules, axis, &PresetRule::axis) != p.rules.end();
  };
  const auto found = std::ranges::find_if(kPresets, needs);
  return found == kPresets.end() ? nullptr : &*found;
}

bool splits_batch(const Preset& preset) { return preset.rules.front().dim == "batch"; }

// Axes that split the batch.
AxisList axes_of_batch(const Graph& sharded) {
  return sharded.layouts[sharded.find("ids").index()].dims.front();
}

struct Change {
  Job job;
  bool splits_batch = false;
};

Change with_preset(const Job& job, const Preset& preset) {
  Change change{job, splits_batch(preset)};
  std::vector<std::string>& presets = change.job.parallel.presets;
  presets.insert(presets.begin(), std::string(preset.name));
  return change;
}

// Rules that split the batch over its present axes and this one.
Change with_rules(const Job& job, const Graph& sharded, AxisId axis) {
  AxisList axes = axes_of_batch(sharded);
  axes.push_back(axis);
  std::vector<std::string> names;
  for (const AxisId a : axes) names.push_back(job.parallel.mesh[static_cast<std::size_t>(a)].name);
  Change change{job, true};
  for (const char* tensor : {"ids", "targets"})
    change.job.parallel.rules.push_back({.tensor = tensor, .dims = {{"batch", names}}, .origin = ""});
  return change;
}

// Changes that may help, the likeliest first.
std::vector<Change> changes_for(const Job& job, const Graph& sharded, AxisId axis) {
  const std::string& name = job.parallel.mesh[static_cast<std::size_t>(axis)].name;
  std::vector<Change> list;
  if (name == "pp" && job.parallel.pipeline.axis.empty()) {
    list.push_back({job});
    list.back().job.parallel.pipeline.axis = name;
  }
  const Preset* preset = preset_for(name);
  if (preset != nullptr && std::ranges::count(job.parallel.presets, preset->name) == 0)
    list.push_back(with_preset(job, *preset));
  list.push_back(with_rules(job, sharded, axis));
  return list;
}

// Multiples of `unit` on both sides of a batch, the nearer first.
std::vector<std::int32_t> batches_near(std::int64_t batch, std::int64_t unit) {
  const std::int64_t below = batch / unit * unit, above = below + unit;
  std::vector<std::int64_t> both{above, below};
  std::ranges::stable_sort(both, {}, [&](std::int64_t b) { return std::abs(b - batch); });
  std::vector<std::int32_t> list;
  for (const std::int64_t b : both)
    if (b > 0 && b <= INT32_MAX) list.push_back(static_cast<std::int32_t>(b));
  return list;
}

bool gives_work(const Training& training, const Job& changed, AxisId axis) {
  const std::optional<Graph> sharded = training.shard_changed(changed);
  const ParallelSpec& parallel = changed.parallel;
  return sharded && (parallel.mesh[static_cast<std::size_t>(axis)].name == parallel.pipeline.axis ||
                     !idle_axes(*sharded, {parallel.mesh}).has(axis));
}

// The outcome, with the lines to paste below it.
std::string with_outcome(const std::string& outcome, const std::string& lines) {
  return outcome + ":\n         " + lines;
}

// False if a round might not be full: with several chunks a device, or with paired passes, messages then come
// out of step. Only compiled Programs could tell.
bool keeps_step(const ParallelSpec& parallel, std::int64_t micro_batches, std::int64_t devices) {
  const bool in_rounds = parallel.pipeline.schedule == "interleaved" || parallel.paired_passes;
  return !in_rounds || micro_batches % devices == 0;
}

// The job with the fewest micro-batches that fill the pipeline. `parts`: devices that split the batch.
std::optional<Job> filling(const Training& training, std::int64_t batch, std::int64_t parts,
                           std::int64_t devices) {
  for (std::int64_t cuts = devices; cuts <= batch / parts; ++cuts) {
    if (batch % (parts * cuts) != 0 || !keeps_step(training.job().parallel, cuts, devices)) continue;
    Job changed = training.job();
    changed.training.batch = static_cast<std::int32_t>(batch);
    changed.training.micro_batches = static_cast<std::int32_t>(cuts);
    if (training.shard_changed(changed)) return changed;
  }
  return std::nullopt;
}

// The job with the nearest batch that can be cut like this. Of parts * devices consecutive batches one always
// divides.
std::optional<Job> filling_near(const Training& training, std::int64_t parts, std::int64_t devices) {
  const std::int64_t now = training.job().training.batch;
  for (std::int64_t away = 0; away <= parts * devices && !training.is_cut_off(); ++away)
    for (const std::int64_t batch : {now + away, now - away})
      if (std::optional<Job> changed = filling(training, batch, parts, devices)) return changed;
  return std::nullopt;
}

}  // namespace

Training::Training(const LoadedJob& loaded) : loaded_(loaded), job_(loaded.job), source_(loaded.source) {}

Training::Training(const LoadedJob& loaded, std::size_t program)
    : loaded_(loaded),
      program_(program),
      job_(job_of(loaded.job, loaded.job.programs[program])),
      source_(source_of(loaded.source, program)) {}

std::string Training::lines_to(const Job& changed) const { return lines_to_paste(source_, job_, changed); }

bool Training::is_legal(const Job& changed) const {
  if (!program_) return hyperrun::check_job(changed, source_, JobUse::kToBeForeseen).empty();
  Job whole = loaded_.job;
  whole.training = changed.training;
  whole.programs[*program_].parallel = changed.parallel;
  return hyperrun::check_job(whole, loaded_.source, JobUse::kToBePlanned).empty() &&
         check_programs(whole, loaded_.source).empty();
}

std::optional<Graph> Training::shard_changed(Job changed) const try {
  if (is_cut_off() || !fill_defaults(changed, source_).empty() || !is_legal(changed)) return std::nullopt;
  return sharded_training(changed);
} catch (const Error& e) {
  if (e.code() == Code::kInternal) throw;
  return std::nullopt;
}

std::string remedy_of_idle(const Training& training, const Graph& sharded, AxisId axis) {
  const Job& job = training.job();
  const Mesh mesh{job.parallel.mesh};
  const std::vector<Change> changes = changes_for(job, sharded, axis);
  for (const Change& change : changes)
    if (gives_work(training, change.job, axis)) return training.lines_to(change.job);
  const std::int64_t unit = job.training.micro_batches * mesh.size(axes_of_batch(sharded)) * mesh.size(axis);
  for (const Change& change : changes) {
    if (!change.splits_batch) continue;
    for (const std::int32_t batch : batches_near(job.training.batch, unit)) {
      Job changed = change.job;
      changed.training.batch = batch;
      if (gives_work(training, changed, axis)) return training.lines_to(changed);
    }
  }
  return fmt::format("leave the axis out and take {} of the devices: {}",
                     job.supernode.devices / mesh.size(axis),
                     training.is_cut_off() ? kCutOff : "neither a preset nor the batch can be split over it");
}

std::string remedy_of_waiting(const Training& training, const Graph& sharded, int devices) {
  const Mesh mesh{training.job().parallel.mesh};
  const std::optional<Job> changed = filling_near(training, mesh.size(axes_of_batch(sharded)), devices);
  if (!changed)
    return std::string("take fewer stages, or more micro-batches of a larger batch") +
           (training.is_cut_off() ? fmt::format(" ({})", kCutOff) : "");
  const double idle = idle_share(changed->parallel.pipeline, devices, changed->training.micro_batches);
  return with_outcome(fmt::format("idle for {:.0f} %", 100 * idle), training.lines_to(*changed));
}

}  // namespace hyperrun
