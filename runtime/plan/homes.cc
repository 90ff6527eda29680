#include "runtime/plan/homes.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "runtime/compile/slot_nodes.h"

namespace hyperrun {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// "layers.12.ffn.up": 12; of names that lie in no layer -1 or, behind the layers, `layers`.
int layer_of_name(std::string_view name, int layers) {
  constexpr std::string_view kLayers = "layers.";
  if (name.starts_with(kLayers)) {
    int layer = 0;
    std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
    return std::min(layer, layers);
  }
  return name.starts_with("embed") || name.starts_with("positions") ? -1 : layers;
}

bool has_dim(const SizedStep& step, TensorId t, std::string_view name) {
  const Graph& graph = step.graph();
  return t.valid() && std::ranges::any_of(graph[t].dims, [&](DimId d) { return graph[d].name == name; });
}

}  // namespace

bool has_width(const SizedStep& step, TensorId t) { return has_dim(step, t, "hidden"); }

bool has_two_widths(const SizedStep& step, TensorId t) {
  return has_width(step, t) && (has_dim(step, t, "ffn") || has_dim(step, t, "expert_ffn"));
}

bool lies_over_experts(const SizedStep& step, TensorId t) {
  const AxisId experts = step.program().mesh.find("ep");
  return experts >= 0 && t.valid() && step.graph().layouts[t.index()].split_axes().has(experts);
}

AxisList cut_by(const SizedStep& step, TensorId gradient) {
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

std::vector<Home> homes_of(const SizedStep& step, int layers) {
  const Program& program = step.program();
  std::vector<Home> homes;
  homes.reserve(program.instrs.size());
  const SlotNodes slots(step.graph());
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Node& node = step.node(i);
    Home home{node.phase, node.phase == Phase::kUpdate ? layer_of_name(node.name, layers) : node.layer,
              step.micro_batch_of(i)};
    home.for_weights = slots.stays(step.node_of(i));
    homes.push_back(home);
  }
  return homes;
}

std::vector<Stay> stays_of(const Program& program, const std::vector<Home>& homes, int layers) {
  std::vector<Stay> stays(program.buffers.size());
  for (std::size_t b = 0; b < stays.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    Stay& stay = stays[b];
    if (buffer.state || buffer.first < 0) {
      stay = {layer_of_name(buffer.name, layers), true, false};
      continue;
    }
    const Home &made = homes[at(buffer.first)], &used = homes[at(buffer.last)];
    stay.layer = made.layer;
    // Sums and copies are there from the first micro-batch or before until the last or behind it.
    stay.lasts = made.micro_batch != used.micro_batch && made.micro_batch <= 0;
    stay.kept = !stay.lasts && made.phase == Phase::kForward && used.phase == Phase::kBackward;
  }
  for (std::size_t i = 0; i < homes.size(); ++i) {
    const Home& h = homes[i];
    if (h.phase != Phase::kForward && h.phase != Phase::kBackward) continue;
    each_use(program.instrs[i], [&](const Operand& o, bool, bool) {
      stays[o.buffer.index()].before |= h.layer < 0;
      stays[o.buffer.index()].behind |= h.layer >= layers;
    });
  }
  return stays;
}

}  // namespace hyperrun
