#include "runtime/plan/instr_attribution.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "runtime/compile/slot_nodes.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Layer in a name: 12 for "layers.12.ffn.up", -1 for the embedding, `layers` for the head.
int layer_of_name(std::string_view name, int layers) {
  constexpr std::string_view kLayers = "layers.";
  if (name.starts_with(kLayers)) {
    int layer = 0;
    std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
    return std::min(layer, layers);
  }
  return name.starts_with("embed") || name.starts_with("positions") ? -1 : layers;
}

bool has_dim(const ParametricStep& step, TensorId t, std::string_view name) {
  const Graph& graph = step.graph();
  return t.valid() && std::ranges::any_of(graph[t].dims, [&](DimId d) { return graph[d].name == name; });
}

}  // namespace

bool has_model_width(const ParametricStep& step, TensorId t) { return has_dim(step, t, "hidden"); }

bool has_both_widths(const ParametricStep& step, TensorId t) {
  return has_model_width(step, t) && (has_dim(step, t, "ffn") || has_dim(step, t, "expert_ffn"));
}

bool is_split_over_experts(const ParametricStep& step, TensorId t) {
  const AxisId experts = step.program().mesh.find("ep");
  return experts >= 0 && t.valid() && step.graph().layouts[t.index()].split_axes().has(experts);
}

AxisList shared_tensor_axes(const ParametricStep& step, TensorId gradient) {
  const Mesh& mesh = step.program().mesh;
  const Layout& layout = step.graph().layouts[gradient.index()];
  AxisList axes;
  bool is_repeated = false;
  for (const std::string_view name : {"tp", "tpx", "tpy"}) {
    const AxisId a = mesh.find(name);
    if (a < 0 || layout.split_axes().has(a)) continue;
    axes.push_back(a), is_repeated |= !layout.partial.has(a);
  }
  return is_repeated ? axes : AxisList{};
}

std::vector<InstrSite> attribute_instrs(const ParametricStep& step, int layers) {
  const Program& program = step.program();
  std::vector<InstrSite> sites;
  sites.reserve(program.instrs.size());
  const SlotNodes slots(step.graph());
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Node& node = step.node(i);
    InstrSite site{node.phase, node.phase == Phase::kUpdate ? layer_of_name(node.name, layers) : node.layer,
                   step.micro_batch_of(i)};
    site.for_weights = slots.stays(step.node_of(i));
    sites.push_back(site);
  }
  return sites;
}

std::vector<BufferLifetime> lifetimes_of(const Program& program, const std::vector<InstrSite>& sites,
                                         int layers) {
  std::vector<BufferLifetime> lifetimes(program.buffers.size());
  for (std::size_t b = 0; b < lifetimes.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    BufferLifetime& lifetime = lifetimes[b];
    if (buffer.state || buffer.first < 0) {
      lifetime = {layer_of_name(buffer.name, layers), true, false};
      continue;
    }
    const InstrSite &made = sites[at(buffer.first)], &used = sites[at(buffer.last)];
    lifetime.layer = made.layer;
    // Gradient sums and copies of weights live from the first micro-batch, or before, to the last or beyond.
    lifetime.whole_step = made.micro_batch != used.micro_batch && made.micro_batch <= 0;
    lifetime.kept = !lifetime.whole_step && made.phase == Phase::kForward && used.phase == Phase::kBackward;
  }
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const InstrSite& h = sites[i];
    if (h.phase != Phase::kForward && h.phase != Phase::kBackward) continue;
    each_use(program.instrs[i], [&](const Operand& o, bool, bool) {
      lifetimes[o.buffer.index()].used_before |= h.layer < 0;
      lifetimes[o.buffer.index()].used_behind |= h.layer >= layers;
    });
  }
  return lifetimes;
}

}  // namespace hyperrun
