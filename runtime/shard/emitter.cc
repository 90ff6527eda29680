#include "runtime/shard/emitter.h"

#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {

TensorId Emitter::add(Tensor tensor, const Layout& layout) {
  const TensorId id = graph_.add_tensor(std::move(tensor));
  graph_.layouts.push_back(layout);
  return id;
}

TensorId Emitter::moved(TensorId of, const Layout& layout, const std::string& suffix) {
  Tensor t = graph_[of];
  t.name += suffix;
  t.updates = {};
  t.saved = {};
  t.cls = TensorClass::kExchanged;
  return add(std::move(t), layout);
}

TensorId Emitter::cast(TensorId from, TensorId of, DType to, const std::string& suffix) {
  const TensorId made = moved(of, Layout(graph_.layouts[from.index()]), suffix);
  graph_[made].dtype = to;
  append(graph_[made].name + ".Cast", op::Cast{}, {from}, {made});
  return made;
}

void Emitter::append(const std::string& name, GraphOp op, std::vector<TensorId> inputs,
                     std::vector<TensorId> outputs, TensorId addend) {
  const int n = ++named_[name];
  graph_.nodes.push_back({n > 1 ? name + std::to_string(n) : name, std::move(op), std::move(inputs),
                          std::move(outputs), addend, phase, layer, 0, reason});
}

void Emitter::write_instead(TensorId written, TensorId wanted) {
  Node& last = graph_.nodes.back();
  HR_CHECK(
      last.outputs.size() == 1 && last.outputs[0] == written && written.index() + 1 == graph_.tensors.size(),
      last.name);
  last.outputs[0] = wanted;
  graph_.tensors.pop_back();
  graph_.layouts.pop_back();
}

}  // namespace hyperrun
