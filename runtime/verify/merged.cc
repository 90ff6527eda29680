#include "runtime/verify/merged.h"

#include <string_view>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/partition.h"

namespace hyperrun {
namespace {

class GraphMerger {
 public:
  GraphMerger(const Compiled& compiled, const PipelineSpec& pipeline)
      : training_(compiled.training),
        graphs_(partition(training_, compiled.plan.mesh, pipeline)),
        devices_of_role_(static_cast<int>(compiled.plan.mesh.devices() / std::ssize(graphs_))) {
    for (std::size_t i = 0; i < training_.nodes.size(); ++i) {
      position_.emplace(training_.nodes[i].name, static_cast<int>(i));
      for (const TensorId t : training_.nodes[i].outputs) made_at_[t] = static_cast<int>(i);
    }
  }

  Merged run() {
    for (std::size_t role = 0; role < graphs_.size(); ++role)
      for (std::size_t i = 0; i < graphs_[role].nodes.size(); ++i) add(role, i);
    Merged merged;
    merged.graph = graphs_[0];
    merged.graph.nodes.clear();
    merged.at.resize(graphs_.size());
    for (auto& [place, found] : found_) {
      for (const std::size_t role : found.roles)
        merged.at[role].emplace(found.node->name, static_cast<int>(merged.devices.size()));
      merged.devices.push_back(devices_of_role_ * static_cast<int>(found.roles.size()));
      merged.graph.nodes.push_back(*found.node);
    }
    return merged;
  }

 private:
  // The place of a node: index in the sharded graph, index among the nodes that pipelines add there, and the
  // role if only this role has the node.
  using Place = std::tuple<int, std::size_t, std::size_t>;
  struct Found {
    const Node* node;
    std::vector<std::size_t> roles;
  };

  void add(std::size_t role, std::size_t index) {
    const Node& node = graphs_[role].nodes[index];
    const auto known = position_.find(node.name);
    const Place place =
        known != position_.end() ? Place{known->second, 0, 0} : Place{maker(node), 1 + index, role};
    auto [found, fresh] = found_.try_emplace(place, Found{&node, {}});
    found->second.roles.push_back(role);
  }

  // The node of the sharded graph that makes the tensor of an added node: of a message, or of a sum of two
  // roles' sums.
  int maker(const Node& added) const {
    return made_at_.at(added.outputs.empty() ? added.inputs[0] : added.outputs[0]);
  }

  const Graph& training_;
  std::vector<Graph> graphs_;  // by role
  int devices_of_role_;
  std::map<std::string_view, int> position_;  // by name
  std::map<TensorId, int> made_at_;
  std::map<Place, Found> found_;
};

}  // namespace

Merged merge(const Compiled& compiled, const PipelineSpec& pipeline) {
  return GraphMerger(compiled, pipeline).run();
}

std::vector<Write> writes(const Program& program, const Merged& merged, std::size_t role, int micro_batches) {
  std::vector<Write> list(program.instrs.size());
  std::map<std::string_view, std::size_t> last;  // by origin: the last instruction, which writes the outputs
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    if (beyond_hbm(program.instrs[i].op) != Tier::kHbm) continue;  // transfers compute nothing
    const std::string& origin = program.origins[static_cast<std::size_t>(program.instrs[i].origin)];
    if (origin.ends_with(kMadeAgain)) continue;
    const std::size_t mark = origin.find('#');
    const auto node = merged.at[role].find(std::string_view(origin).substr(0, mark));
    HR_CHECK(node != merged.at[role].end(), origin);
    list[i] = {node->second, mark == std::string::npos ? 0 : std::stoi(origin.substr(mark + 1))};
    if (merged.graph.nodes[static_cast<std::size_t>(node->second)].phase == Phase::kUpdate)
      list[i].micro_batch = micro_batches - 1;
    const auto [earlier, is_new] = last.emplace(origin, i);
    if (!is_new) list[earlier->second].node = -1;
    earlier->second = i;
  }
  return list;
}

}  // namespace hyperrun
