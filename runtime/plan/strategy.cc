#include "runtime/plan/strategy.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/joined.h"

namespace hyperrun {

std::string_view axis_name(const Strategy& s, PlanAxis a) {
  switch (a) {
    case PlanAxis::kPipeline: return "pp";
    case PlanAxis::kData: return "dp";
    case PlanAxis::kExpert: return "ep";
    case PlanAxis::kRing: return "ring";
    case PlanAxis::kContext: return "cp";
    case PlanAxis::kTensorY: return "tpy";
    case PlanAxis::kTensor: return s[PlanAxis::kTensorY] > 1 ? "tpx" : "tp";
  }
  return "";
}

namespace {

std::vector<std::string> presets_of(const Strategy& s) {
  std::vector<std::string> presets;
  const auto has = [&](PlanAxis a) { return s[a] > 1; };
  if (has(PlanAxis::kData)) presets.emplace_back("dp");
  if (has(PlanAxis::kExpert)) presets.emplace_back("ep");
  if (has(PlanAxis::kRing)) presets.emplace_back("ring");
  if (has(PlanAxis::kContext)) presets.emplace_back("cp");
  if (has(PlanAxis::kTensorY))
    presets.emplace_back("tp2d");
  else if (has(PlanAxis::kTensor))
    presets.insert(presets.end(), {"tp", "sp"});
  if (s.experts != PlanExperts::kRepeated) presets.emplace_back(name(s.experts));
  if (s.zero > 0) presets.push_back(fmt::format("zero{}", s.zero));
  return presets;
}

PipelineSpec pipeline_of(const Strategy& s, const ModelSpec& model) {
  PipelineSpec p;
  const std::int32_t stages = s[PlanAxis::kPipeline];
  if (stages == 1) return p;
  p.axis = axis_name(s, PlanAxis::kPipeline);
  p.schedule = name(s.schedule);
  p.chunks = s.chunks;
  for (std::int32_t v = 0; v < stages * s.chunks; ++v)
    p.stages.push_back({v % stages, layers_of_stage(s, model.layers, v)});
  return p;
}

}  // namespace

std::int64_t Strategy::devices() const {
  std::int64_t product = 1;
  for (const std::int32_t n : sizes) product *= n;
  return product;
}

std::int32_t micro_batches(const Strategy& s, std::int32_t batch) {
  const std::int64_t at_once = std::int64_t{s.samples} * s.replicas();
  return batch % at_once == 0 ? static_cast<std::int32_t>(batch / at_once) : 0;
}

std::int32_t layers_of_stage(const Strategy& s, std::int32_t layers, std::int32_t v) {
  const std::int32_t stages = s[PlanAxis::kPipeline] * s.chunks,
                     shares = layers + s.first_stage_shortfall + s.last_stage_shortfall;
  const std::int32_t share = shares / stages + (v < shares % stages ? 1 : 0);
  return share - (v == 0 ? s.first_stage_shortfall : 0) - (v == stages - 1 ? s.last_stage_shortfall : 0);
}

std::int32_t least_layers(const Strategy& s, std::int32_t layers) {
  const std::int32_t stages = s[PlanAxis::kPipeline] * s.chunks;
  std::int32_t least = layers;
  // The last stage before the end has the fewest of the middle.
  for (const std::int32_t v : {0, std::max(0, stages - 2), stages - 1})
    least = std::min(least, layers_of_stage(s, layers, v));
  return least;
}

std::int32_t most_layers(const Strategy& s, std::int32_t layers) {
  const std::int32_t devices = s[PlanAxis::kPipeline];
  std::int32_t most = 0;
  // The second device has the most of the middle.
  for (const std::int32_t d : {0, std::min(1, devices - 1), devices - 1})
    most = std::max(most, layers_of_device(s, layers, d));
  return most;
}

bool may_recompute_extra(const Strategy& s, std::int32_t layers) {
  return stronger_recompute(s.recompute) && most_layers(s, layers) > 1;
}

std::int32_t layers_of_device(const Strategy& s, std::int32_t layers, std::int32_t device) {
  const std::int32_t devices = s[PlanAxis::kPipeline], stages = devices * s.chunks;
  const std::int32_t shares = layers + s.first_stage_shortfall + s.last_stage_shortfall,
                     longer = shares % stages;
  const std::int32_t of_longer = longer > device ? (longer - device - 1) / devices + 1 : 0;
  return shares / stages * s.chunks + of_longer - (device == 0 ? s.first_stage_shortfall : 0) -
         (device == devices - 1 ? s.last_stage_shortfall : 0);
}

std::vector<MeshAxis> mesh_of(const Strategy& s) {
  std::vector<MeshAxis> mesh;
  for (const PlanAxis a : s.order)
    if (s[a] > 1) mesh.push_back({std::string(axis_name(s, a)), s[a]});
  return mesh;
}

std::optional<PlanRecompute> stronger_recompute(PlanRecompute recompute) {
  switch (recompute) {
    case PlanRecompute::kNone: return PlanRecompute::kSelective;
    case PlanRecompute::kSelective: return PlanRecompute::kFull;
    case PlanRecompute::kFull: break;
  }
  return std::nullopt;
}

namespace {

// Recomputation of each layer of a device order: a device's first chunk comes before its second.
std::vector<PlanRecompute> recompute_of_layers(const Strategy& s, std::int32_t layers) {
  std::vector<PlanRecompute> list;
  std::vector<std::int32_t> left(static_cast<std::size_t>(s[PlanAxis::kPipeline]), s.extra_recompute_layers);
  for (std::int32_t v = 0; v < s[PlanAxis::kPipeline] * s.chunks; ++v) {
    std::int32_t& extra_recompute_layers = left[static_cast<std::size_t>(v % s[PlanAxis::kPipeline])];
    for (std::int32_t n = layers_of_stage(s, layers, v); n > 0; --n)
      list.push_back(extra_recompute_layers-- > 0 ? *stronger_recompute(s.recompute) : s.recompute);
  }
  return list;
}

// One spec for each run of layers with equal recomputation.
std::vector<RecomputeSpec> recompute_specs(const Strategy& s, std::int32_t layers) {
  std::vector<RecomputeSpec> specs;
  const std::vector<PlanRecompute> of_layers = recompute_of_layers(s, layers);
  for (std::int32_t first = 0, last; first < std::ssize(of_layers); first = last + 1) {
    const PlanRecompute r = of_layers[static_cast<std::size_t>(first)];
    for (last = first;
         last + 1 < std::ssize(of_layers) && of_layers[static_cast<std::size_t>(last) + 1] == r;)
      ++last;
    if (r != PlanRecompute::kNone) specs.push_back({std::string(name(r)), first, last});
  }
  return specs;
}

}  // namespace

Job job_of(const Job& base, const Strategy& s) {
  Job job = base;
  job.parallel.rules.clear();
  job.parallel.tiles = 1;
  job.parallel.paired_passes = false;
  job.parallel.mesh = mesh_of(s);
  job.parallel.presets = presets_of(s);
  job.parallel.pipeline = pipeline_of(s, base.model);
  job.training.micro_batches = micro_batches(s, base.training.batch);
  job.training.recompute = recompute_specs(s, base.model.layers);
  job.memory.policy = s.memory == PlanMemory::kNone ? "none" : "hyperoffload";
  return job;
}

namespace {

constexpr std::array kSchedules{PlanSchedule::kGpipe, PlanSchedule::k1f1b, PlanSchedule::kInterleaved,
                                PlanSchedule::kZeroBubble};
constexpr std::array kRecomputes{PlanRecompute::kNone, PlanRecompute::kSelective, PlanRecompute::kFull};

// Reads sizes and order of the axes from a mesh. Returns false if an axis has an unknown name.
bool take_mesh(Strategy& s, const std::vector<MeshAxis>& mesh) {
  for (const MeshAxis& axis : mesh)
    if (axis.name == "tpy") s[PlanAxis::kTensorY] = axis.size;
  std::size_t place = kPlanAxes - mesh.size();
  std::vector<PlanAxis> unused(s.order.begin(), s.order.end());
  for (const MeshAxis& axis : mesh) {
    const auto a = std::ranges::find_if(unused, [&](PlanAxis a) { return axis_name(s, a) == axis.name; });
    if (a == unused.end()) return false;
    s[*a] = axis.size, s.order[place++] = *a;
    unused.erase(a);
  }
  std::ranges::copy(unused, s.order.begin());
  return true;
}

void take_stages(Strategy& s, const PipelineSpec& pipeline) {
  for (const PlanSchedule schedule : kSchedules)
    if (name(schedule) == pipeline.schedule) s.schedule = schedule;
  s.chunks = std::max(1, pipeline.chunks);
}

// Strategies with the shortfalls that uneven stages may have. The middle stage may have one layer more than
// an even share, so several are possible.
std::vector<Strategy> with_ends(const Strategy& s, const std::vector<PipelineSpec::Stage>& stages) {
  std::vector<Strategy> list{s};
  if (stages.size() < 2) return list;
  const std::int32_t middle = stages[stages.size() / 2].layers;
  for (std::int32_t more = -1; more <= 1; ++more)
    for (std::int32_t less = -1; less <= 1; ++less) {
      list.push_back(s);
      list.back().first_stage_shortfall = middle - stages.front().layers + more;
      list.back().last_stage_shortfall = middle - stages.back().layers + less;
    }
  return list;
}

// The weakest recomputation of any layer, and how many layers of each device recompute more.
void take_recompute(Strategy& s, const Job& job) {
  std::array<std::int32_t, kRecomputes.size()> layers{};
  std::int32_t covered = 0;
  for (const RecomputeSpec& spec : job.training.recompute)
    for (const PlanRecompute r : kRecomputes)
      if (name(r) == spec.policy) {
        layers[static_cast<std::size_t>(r)] += spec.last_layer - spec.first_layer + 1;
        covered += spec.last_layer - spec.first_layer + 1;
      }
  layers.front() += job.model.layers - covered;
  for (const PlanRecompute r : kRecomputes) {
    if (layers[static_cast<std::size_t>(r)] <= 0) continue;
    s.recompute = r;
    const std::int32_t others =
        r == PlanRecompute::kFull ? 0 : layers[static_cast<std::size_t>(*stronger_recompute(r))];
    s.extra_recompute_layers = (others + s[PlanAxis::kPipeline] - 1) / s[PlanAxis::kPipeline];
    return;
  }
}

}  // namespace

std::optional<Strategy> strategy_of(const Job& job) {
  Strategy s;
  if (job.parallel.mesh.size() > kPlanAxes || !take_mesh(s, job.parallel.mesh)) return std::nullopt;
  for (const std::string& preset : job.parallel.presets) {
    if (preset.starts_with("zero")) s.zero = preset.back() - '0';
    for (const PlanExperts e : {PlanExperts::kWidth, PlanExperts::kSpread})
      if (preset == name(e)) s.experts = e;
  }
  take_stages(s, job.parallel.pipeline);
  take_recompute(s, job);
  if (job.memory.policy == "hyperoffload") s.memory = PlanMemory::kHyperOffload;
  const std::int64_t parts = std::int64_t{s.replicas()} * std::max(1, job.training.micro_batches);
  if (job.training.batch % parts != 0) return std::nullopt;
  s.samples = static_cast<std::int32_t>(job.training.batch / parts);
  ParallelSpec own = job.parallel;
  own.tiles = 1, own.paired_passes = false;  // Strategies do not cover these two.
  for (const Strategy& candidate : with_ends(s, job.parallel.pipeline.stages)) {
    const Job same = job_of(job, candidate);
    if (same.parallel == own && same.training == job.training && same.memory == job.memory) return candidate;
  }
  return std::nullopt;
}

std::string_view name(PlanSchedule schedule) {
  switch (schedule) {
    case PlanSchedule::kGpipe: return "gpipe";
    case PlanSchedule::k1f1b: return "1f1b";
    case PlanSchedule::kInterleaved: return "interleaved";
    case PlanSchedule::kZeroBubble: return "zero_bubble";
  }
  return "";
}

std::string_view name(PlanExperts experts) {
  switch (experts) {
    case PlanExperts::kRepeated: return "repeated";
    case PlanExperts::kWidth: return "etp";
    case PlanExperts::kSpread: return "ep_tp";
  }
  return "";
}

std::string_view name(PlanRecompute recompute) {
  switch (recompute) {
    case PlanRecompute::kNone: return "none";
    case PlanRecompute::kSelective: return "selective";
    case PlanRecompute::kFull: return "full";
  }
  return "";
}

namespace {

std::string recompute_text(const Strategy& s) {
  std::string text;
  if (s.recompute != PlanRecompute::kNone) text = std::string(name(s.recompute));
  if (s.extra_recompute_layers > 0)
    text += fmt::format("{}{} in {} {} of a device", text.empty() ? "" : ", ",
                        name(*stronger_recompute(s.recompute)), s.extra_recompute_layers,
                        s.extra_recompute_layers == 1 ? "layer" : "layers");
  return text.empty() ? "" : ", recompute " + text;
}

}  // namespace

namespace {

// Text for the first or last stage of an uneven pipeline.
std::string shortfall_text(std::int32_t layers, const char* stage) {
  if (layers == 0) return "";
  const std::int32_t n = std::abs(layers);
  return fmt::format(", {} {} {} in the {} stage", n, n == 1 ? "layer" : "layers",
                     layers < 0 ? "more" : "fewer", stage);
}

}  // namespace

std::string describe(const Strategy& s) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh_of(s)) axes.push_back(fmt::format("{} {}", axis.name, axis.size));
  std::string text = axes.empty() ? "one device" : joined(axes, " x ");
  if (s.zero > 0) text += fmt::format(", zero{}", s.zero);
  if (s.experts != PlanExperts::kRepeated) text += fmt::format(", {}", name(s.experts));
  if (s[PlanAxis::kPipeline] > 1) text += fmt::format(", {}", name(s.schedule));
  if (s.chunks > 1) text += fmt::format(" of {} chunks", s.chunks);
  text += shortfall_text(s.first_stage_shortfall, "first") + shortfall_text(s.last_stage_shortfall, "last");
  text += fmt::format(", {} {} a micro-batch", s.samples, s.samples == 1 ? "sequence" : "sequences");
  text += recompute_text(s);
  if (s.memory != PlanMemory::kNone) text += ", hyperoffload";
  return text;
}

}  // namespace hyperrun
