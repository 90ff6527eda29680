#include "runtime/verify/comparison.h"

#include "runtime/base/error.h"
#include "runtime/ir/describe_layout.h"

namespace hyperrun {

Comparison::Comparison(const Merged& sharded, const Mesh& mesh, const Reference& reference,
                       const Counterparts& known, int micro_batches)
    : sharded_(sharded),
      graph_(sharded.graph),
      mesh_(mesh),
      reference_(reference),
      known_(known),
      micro_batches_(micro_batches) {}

void Comparison::add(int device, const Write& write, std::size_t output, std::span<const std::byte> bytes) {
  const TensorId t = graph_.nodes[static_cast<std::size_t>(write.node)].outputs[output];
  const Counterpart& counterpart = known_.of[t.index()];
  if (!counterpart.tensor.valid()) return;
  if (counterpart.in == MicroBatches::kFirst && write.micro_batch > 0) return;
  if (counterpart.in == MicroBatches::kLast && write.micro_batch + 1 < micro_batches_) return;
  const Place place{step_, write.micro_batch, write.node, output};
  Parts parts;
  {
    const std::lock_guard lock(mutex_);
    Pending& pending = pending_[place];
    if (pending.parts.empty()) {
      pending.parts.resize(static_cast<std::size_t>(mesh_.devices()));
      pending.missing = sharded_.devices[static_cast<std::size_t>(write.node)];
    }
    pending.parts[static_cast<std::size_t>(device)].assign(bytes.begin(), bytes.end());
    if (--pending.missing > 0) return;
    parts = std::move(pending.parts);
    pending_.erase(place);
  }
  Compared result = compare(place, parts);
  const std::lock_guard lock(mutex_);
  compared_.emplace(place, std::move(result));
}

Compared Comparison::compare(const Place& place, const Parts& parts) const {
  const auto& [step, micro_batch, node_index, output] = place;
  const Node& node = graph_.nodes[static_cast<std::size_t>(node_index)];
  const TensorId t = node.outputs[output];
  const Counterpart& counterpart = known_.of[t.index()];
  const Placed lies = placed(graph_, t);
  Compared result;
  result.step = step;
  result.micro_batch = micro_batch;
  result.tensor = graph_[t].name;
  result.node = node.name;
  result.operation = name(node.op);
  result.layout = describe_layout(graph_, t, mesh_);
  result.kind = counterpart.kind;
  result.difference =
      relative_difference(reference_.value(counterpart.tensor, micro_batch), whole(lies, mesh_, parts));
  result.allowed = step < 0 ? 0 : reference_.tolerance(counterpart.tensor, micro_batch);
  result.disagreeing = disagreement(lies, mesh_, parts);
  return result;
}

std::vector<Compared> Comparison::take() {
  HR_CHECK(pending_.empty());
  std::vector<Compared> list;
  for (auto& [place, result] : compared_) list.push_back(std::move(result));
  compared_.clear();
  return list;
}

}  // namespace hyperrun
