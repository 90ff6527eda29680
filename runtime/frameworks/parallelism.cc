#include "runtime/frameworks/parallelism.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "runtime/base/error.h"

namespace hyperrun::frameworks {
namespace {

bool has_preset(const ParallelSpec& p, std::string_view name) {
  return std::ranges::find(p.presets, name) != p.presets.end();
}

// Experts that are split over the axes of the context, too: a rule for each of their weights.
std::vector<ShardRule> expert_rules(const Parallelism& l) {
  std::vector<std::string> axes;
  if (l.expert > 1) axes.emplace_back("ep");
  if (l.experts_over_ring) axes.emplace_back("ring");
  if (l.experts_over_ulysses) axes.emplace_back("cp");
  if (l.experts == ExpertLayout::kSpread) axes.emplace_back("tp");
  std::vector<ShardRule> rules;
  for (const char* weight : {"gate", "up", "down"})
    rules.push_back({fmt::format("layers.*.experts.{}", weight), {{"experts", axes}}, "", false, {}});
  return rules;
}

// The axes of a mesh, major first, each with its size.
struct KnownAxis {
  std::string_view name;
  std::int32_t Parallelism::*size;
};
constexpr std::array kAxes{
    KnownAxis{"pp", &Parallelism::pipeline}, KnownAxis{"replicas", &Parallelism::replicas},
    KnownAxis{"dp", &Parallelism::data},     KnownAxis{"ep", &Parallelism::expert},
    KnownAxis{"ring", &Parallelism::ring},   KnownAxis{"cp", &Parallelism::ulysses},
    KnownAxis{"tp", &Parallelism::tensor}};

std::vector<MeshAxis> mesh_of(const Parallelism& l) {
  std::vector<MeshAxis> mesh;
  for (const KnownAxis& a : kAxes) mesh.push_back({std::string(a.name), l.*a.size});
  if (l.pipeline_is_inner) std::rotate(mesh.begin(), mesh.begin() + 1, mesh.begin() + 4);
  std::erase_if(mesh, [](const MeshAxis& a) { return a.size == 1; });
  return mesh;
}

}  // namespace

std::vector<std::int32_t> even_layers(std::int32_t stages, std::int32_t layers) {
  std::vector<std::int32_t> list;
  for (std::int32_t v = 0; v < stages; ++v) list.push_back(layers / stages + (v < layers % stages ? 1 : 0));
  return list;
}

std::vector<std::int32_t> layers_of(const Parallelism& l, std::int32_t layers) {
  return l.stages.empty() ? even_layers(l.pipeline * l.chunks, layers) : l.stages;
}

ParallelSpec parallel_of(const Parallelism& l) {
  ParallelSpec p;
  p.mesh = mesh_of(l);
  if (l.data > 1) p.presets.emplace_back("dp");
  if (l.replicas > 1) p.presets.emplace_back("replicas");
  if (l.expert > 1) p.presets.emplace_back("ep");
  if (l.ring > 1) p.presets.emplace_back("ring");
  if (l.ulysses > 1) p.presets.emplace_back("cp");
  if (l.tensor > 1) p.presets.emplace_back("tp");
  if (l.tensor > 1 && l.sequence) p.presets.emplace_back("sp");
  if (l.tensor > 1 && l.experts == ExpertLayout::kWidth) p.presets.emplace_back("etp");
  if (l.tensor > 1 && l.experts == ExpertLayout::kSpread) p.presets.emplace_back("ep_tp");
  if (l.zero > 0 && l.data * l.expert * l.ring * l.ulysses > 1)
    p.presets.push_back(fmt::format("zero{}", l.zero));
  if (l.experts_over_ring || l.experts_over_ulysses) p.rules = expert_rules(l);
  if (l.pipeline == 1) return p;
  p.pipeline.axis = "pp";
  p.pipeline.schedule = l.schedule;
  p.pipeline.chunks = l.chunks;
  for (std::size_t v = 0; v < l.stages.size(); ++v)
    p.pipeline.stages.push_back({static_cast<std::int32_t>(v) % l.pipeline, l.stages[v]});
  return p;
}

std::optional<Parallelism> parallelism_of(const ParallelSpec& p, std::int32_t layers, std::string& why) {
  Parallelism l;
  for (const MeshAxis& axis : p.mesh) {
    const auto* known = std::ranges::find(kAxes, std::string_view(axis.name), &KnownAxis::name);
    if (known == kAxes.end()) return why = fmt::format("an axis {}", axis.name), std::nullopt;
    l.*known->size = axis.size;
  }
  l.sequence = has_preset(p, "sp");
  if (has_preset(p, "etp")) l.experts = ExpertLayout::kWidth;
  if (has_preset(p, "ep_tp")) l.experts = ExpertLayout::kSpread;
  for (std::int32_t z = 1; z <= 3; ++z)
    if (has_preset(p, fmt::format("zero{}", z))) l.zero = z;
  if (!p.pipeline.axis.empty()) {
    l.schedule = p.pipeline.schedule;
    l.chunks = p.pipeline.chunks;
    std::vector<std::int32_t> stages;
    for (std::size_t v = 0; v < p.pipeline.stages.size(); ++v) {
      if (p.pipeline.stages[v].device != static_cast<std::int32_t>(v) % l.pipeline)
        return why = "stages that do not go round the devices in turn", std::nullopt;
      stages.push_back(p.pipeline.stages[v].layers);
    }
    if (stages != even_layers(l.pipeline * l.chunks, layers)) l.stages = std::move(stages);
  }
  const auto same = [&](const Parallelism& candidate) {
    const ParallelSpec q = parallel_of(candidate);
    return q.mesh == p.mesh && q.presets == p.presets;
  };
  if (!same(l)) l.pipeline_is_inner = true;
  if (!same(l)) {
    std::string order;
    for (const MeshAxis& axis : p.mesh) order += (order.empty() ? "" : ", ") + axis.name;
    return why = fmt::format("the axes {} in this order with these presets", order), std::nullopt;
  }
  if (!p.rules.empty()) return why = "rules of the job's own", std::nullopt;
  return l;
}

namespace {

Error bad_experts(const Reading& reading, const std::string& cause) {
  return reading
      .error(Code::kBadValue, cause,
             {"parallel.mesh ep", "parallel.presets etp", "parallel.mesh tp", "parallel.mesh dp",
              "supernode.devices"})
      .legal("a divisor of the devices that split tokens")
      .fix("change the expert parallelism, or the number of devices");
}

// Which axes of the context experts take, and how many replicas then: the first choice that divides.
bool take_axes(Parallelism& l, std::int32_t replicas, std::int32_t experts, bool context_first) {
  std::vector<std::pair<bool, bool>> choices{{false, false}, {false, true}, {true, false}, {true, true}};
  if (context_first) std::ranges::reverse(choices);
  for (const auto& [ring, ulysses] : choices) {
    if ((ring && l.ring == 1) || (ulysses && l.ulysses == 1)) continue;
    const std::int32_t context = (ring ? l.ring : 1) * (ulysses ? l.ulysses : 1);
    if (experts % context != 0 || replicas % (experts / context) != 0) continue;
    l.experts_over_ring = ring, l.experts_over_ulysses = ulysses;
    l.expert = experts / context;
    l.data = replicas / l.expert;
    return true;
  }
  return false;
}

}  // namespace

void place_experts(Parallelism& l, std::int32_t replicas, std::int32_t experts, std::int32_t expert_tensor,
                   Reading& reading, bool context_first) {
  l.data = replicas;
  std::int32_t left = experts;
  if (expert_tensor == l.tensor) {
    l.experts = l.tensor > 1 ? ExpertLayout::kWidth : ExpertLayout::kRepeated;
  } else if (expert_tensor == 1 && experts == 1) {
    l.experts = ExpertLayout::kRepeated;
  } else if (expert_tensor == 1) {
    if (experts % l.tensor != 0)
      throw bad_experts(reading,
                        fmt::format("experts over {} devices cannot be spread over {} of tensor parallelism",
                                    experts, l.tensor));
    l.experts = ExpertLayout::kSpread;
    left /= l.tensor;
  } else {
    throw bad_experts(reading,
                      fmt::format("experts that are split over {} devices beside tensor parallelism of {}",
                                  expert_tensor, l.tensor));
  }
  if (left == 1 || take_axes(l, replicas, left, context_first)) return;
  const std::int64_t places = std::int64_t{replicas} * l.ring * l.ulysses;
  if (places % left != 0)
    throw bad_experts(
        reading, fmt::format("experts over {} devices do not divide the {} that split tokens", left, places));
  reading.leave_out(
      "parallel.mesh ep",
      fmt::format("expert parallelism of {} over parts of the context: experts are repeated", left));
}

std::optional<ExpertDegrees> expert_degrees(const Parallelism& l) {
  if (l.tensor == 1) return ExpertDegrees{l.expert, 1};
  switch (l.experts) {
    case ExpertLayout::kWidth: return ExpertDegrees{l.expert, l.tensor};
    case ExpertLayout::kSpread: return ExpertDegrees{l.expert * l.tensor, 1};
    case ExpertLayout::kRepeated: break;
  }
  if (l.expert > 1) return std::nullopt;
  return ExpertDegrees{1, 1};
}

}  // namespace hyperrun::frameworks
