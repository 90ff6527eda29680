#include "runtime/plan/parametric_step.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/lower_operator.h"
#include "runtime/device/footprint/scratch.h"

namespace hyperrun {
namespace {

bool accumulates(const Instr& instr) { return accumulating_output(instr.op) >= 0; }

// A copy that moves the addend to the place of the sum.
bool copies_addend(const Instr& instr, const Node& node) {
  return std::holds_alternative<instr::Copy>(instr.op) && !std::holds_alternative<op::Slice>(node.op);
}

// A key of all that lowering knows of a tensor, without its name.
void describe(const Graph& graph, TensorId t, std::string& text) {
  const Tensor& tensor = graph[t];
  const Layout& layout = graph.layouts[t.index()];
  text.clear();
  const auto append = [&](auto n) { text.append(reinterpret_cast<const char*>(&n), sizeof n); };
  append(tensor.dtype), append(layout.partial.bits), append(layout.reduction);
  append(tensor.choices), append(tensor.capacity), append(tensor.group), append(tensor.vectors);
  append(tensor.counts.valid());
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    append(tensor.dims[d].index());
    append(layout.dims[d].size());
    for (const AxisId a : layout.dims[d]) append(a);
  }
}

}  // namespace

ParametricStep::ParametricStep(Graph training, const Mesh& mesh, int micro_batches, bool each)
    : graph_(std::move(training)) {
  Lowered lowered = unplaced_step(graph_, mesh, micro_batches);
  program_ = std::move(lowered.program);
  origins_.reserve(program_.instrs.size());
  for (const Instr& instr : program_.instrs)
    origins_.push_back(lowered.origins[static_cast<std::size_t>(instr.origin)]);
  HR_CHECK(std::ranges::none_of(origins_, [](const Origin& o) { return o.node < 0; }));
  const auto batch = std::ranges::find(graph_.dims, "batch", &Dim::name);
  HR_CHECK(batch != graph_.dims.end());
  batch_ = DimId(batch - graph_.dims.begin());
  find_kinds();
  find_alike(each);
  find_contents();
  find_batch_dependence();
  find_splits();
}

void ParametricStep::freeze() {
  Graph few;
  few.dims = std::move(graph_.dims);
  few.tensors.reserve(kinds_.size()), few.layouts.reserve(kinds_.size());
  for (const TensorId t : kinds_) {
    Tensor& tensor = few.tensors.emplace_back(std::move(graph_[t]));
    tensor.updates = {};
    if (tensor.counts.valid()) tensor.counts = frozen(tensor.counts);
    few.layouts.push_back(std::move(graph_.layouts[t.index()]));
  }
  std::vector<Instr> kept;
  few.nodes.reserve(firsts_.size()), kept.reserve(firsts_.size());
  for (const std::size_t i : firsts_) {
    few.nodes.push_back(to_kinds(node(i)));
    kept.push_back(std::move(program_.instrs[i]));
  }
  for (Content& c : contents_)
    if (c.tensor.valid()) c.tensor = frozen(c.tensor);
  graph_ = std::move(few), program_.instrs = std::move(kept);
  origins_ = {}, firsts_ = {}, kind_of_ = {}, kinds_ = {};
}

Node ParametricStep::to_kinds(const Node& node) const {
  Node of;
  of.name = node.name, of.op = node.op;
  of.inputs.reserve(node.inputs.size()), of.outputs.reserve(node.outputs.size());
  for (const TensorId t : node.inputs) of.inputs.push_back(frozen(t));
  for (const TensorId t : node.outputs) of.outputs.push_back(frozen(t));
  return of;
}

void ParametricStep::find_kinds() {
  std::unordered_map<std::string, std::int32_t> known;
  std::string text;
  for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
    const auto next = static_cast<std::int32_t>(kinds_.size());
    describe(graph_, TensorId(t), text);
    kind_of_.push_back(known.try_emplace(text, next).first->second);
    if (kind_of_.back() == next) kinds_.emplace_back(t);
  }
  bytes_.assign(kinds_.size(), -1);
}

// Instructions are equal if they are the same operator on tensors of the same kinds, as in repeated layers.
void ParametricStep::find_alike(bool each) {
  std::unordered_map<std::u32string, std::vector<std::size_t>>
      first;  // several of each: operators have settings
  std::u32string key;
  representative_.reserve(program_.instrs.size());
  for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
    const Instr& instr = program_.instrs[i];
    const Node& n = node(i);
    key = {static_cast<char32_t>(n.op.index()), accumulates(instr) ? U'a' : U'-',
           copies_addend(instr, n) ? U'c' : U'-', static_cast<char32_t>(n.inputs.size())};
    for (const TensorId t : n.inputs) key += static_cast<char32_t>(frozen(t).value);
    for (const TensorId t : n.outputs) key += static_cast<char32_t>(frozen(t).value);
    auto& known = first[key];
    const auto like = std::ranges::find_if(known, [&](std::size_t k) { return node(firsts_[k]).op == n.op; });
    const bool is_first = each || like == known.end();
    representative_.push_back(static_cast<std::uint32_t>(is_first ? firsts_.size() : *like));
    if (!is_first) continue;
    known.push_back(firsts_.size());
    firsts_.push_back(i);
  }
}

void ParametricStep::find_contents() {
  contents_.resize(program_.buffers.size());
  for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
    const Instr& instr = program_.instrs[i];
    if (instr.scratch.buffer.valid()) contents_[instr.scratch.buffer.index()].instr = i;
    if (copies_addend(instr, node(i))) continue;
    for (std::size_t o = 0; o < instr.out.size(); ++o)
      contents_[instr.out[o].buffer.index()].tensor = node(i).outputs[o];
    for (std::size_t o = 0; o < instr.in.size(); ++o)
      if (Content& c = contents_[instr.in[o].buffer.index()]; !c.tensor.valid()) c.tensor = node(i).inputs[o];
  }
}

void ParametricStep::find_batch_dependence() {
  for (const TensorId t : kinds_) kind_has_batch_.push_back(graph_.has_dim(t, batch_));
  const auto has_batch = [&](TensorId t) { return kind_has_batch_[frozen(t).index()]; };
  for (const std::size_t i : firsts_)
    has_batch_.push_back(std::ranges::any_of(node(i).inputs, has_batch) ||
                         std::ranges::any_of(node(i).outputs, has_batch));
}

void ParametricStep::find_splits() {
  for (const TensorId t : kinds_) {
    const Layout& layout = graph_.layouts[t.index()];
    for (std::size_t d = 0; d < layout.dims.size(); ++d) {
      const Split split{graph_[t].dims[d], layout.dims[d]};
      if (!split.axes.empty() && std::ranges::find(splits_, split) == splits_.end()) splits_.push_back(split);
    }
  }
}

bool ParametricStep::divides(const Mesh& mesh, std::int64_t batch) const {
  return std::ranges::all_of(splits_, [&](const Split& s) {
    return graph_[s.dim].pads || (s.dim == batch_ ? batch : graph_[s.dim].size) % mesh.size(s.axes) == 0;
  });
}

// Lengthens dimensions that pad as the shard pass would for this mesh (pad_dims() in runtime/shard/rules.h).
void ParametricStep::pad(const Mesh& mesh) {
  for (std::size_t d = 0; d < graph_.dims.size(); ++d) {
    Dim& dim = graph_.dims[d];
    if (!dim.pads) continue;
    std::int64_t multiple = 1;
    for (const Split& s : splits_)
      if (s.dim.index() == d) multiple = std::lcm(multiple, mesh.size(s.axes));
    dim.size -= dim.padding;
    dim.padding = (multiple - dim.size % multiple) % multiple;
    dim.size += dim.padding;
  }
}

void ParametricStep::resize(const Mesh& mesh, std::int64_t batch) {
  const bool same_mesh = std::exchange(resized_, true) && program_.mesh == mesh;
  if (same_mesh && graph_.dims[batch_.index()].size == batch) return;
  graph_.dims[batch_.index()].size = batch;
  pad(mesh);
  program_.mesh = mesh;
  for (std::size_t k = 0; k < bytes_.size(); ++k)
    if (!same_mesh || kind_has_batch_[k]) bytes_[k] = -1;
  for (std::size_t k = 0; k < program_.instrs.size(); ++k)
    if (!same_mesh || has_batch_[k]) resize_instr(program_.instrs[k], graph_.nodes[k]);
  for (std::size_t b = 0; b < contents_.size(); ++b) {
    Buffer& buffer = program_.buffers[b];
    const TensorId t = contents_[b].tensor;
    buffer.bytes =
        t.valid() ? bytes_of(t) : program_.instrs[representative_[contents_[b].instr]].scratch.bytes;
    buffer.empty = t.valid() ? empty_bytes(graph_, t, program_.mesh) : Bytes(0);
  }
}

void ParametricStep::resize_instr(Instr& instr, const Node& node) {
  if (copies_addend(instr, node)) {
    auto& copy = std::get<instr::Copy>(instr.op);
    instr.in[0].bytes = instr.out[0].bytes = bytes_of(node.outputs[0]);
    instr.in[0].empty = instr.out[0].empty = empty_bytes(graph_, node.outputs[0], program_.mesh);
    copy = {1, 1, instr.in[0].bytes.value / size_of(instr.in[0].dtype), {}, size_of(instr.in[0].dtype)};
    return;
  }
  instr.op = lower_operator({graph_, program_.mesh, accumulates(instr)}, node);
  const auto resize = [this](Operand& o, TensorId t) {
    o.bytes = bytes_of(t), o.empty = empty_bytes(graph_, t, program_.mesh);
  };
  for (std::size_t o = 0; o < instr.in.size(); ++o) resize(instr.in[o], node.inputs[o]);
  for (std::size_t o = 0; o < instr.out.size(); ++o) resize(instr.out[o], node.outputs[o]);
  if (instr.scratch.buffer.valid()) instr.scratch.bytes = scratch_bytes(instr);
}

Bytes ParametricStep::bytes_of(TensorId t) {
  std::int64_t& known = bytes_[t.index()];
  if (known < 0)
    known = size_of(graph_[t].dtype) * local_elements(graph_, t, graph_.layouts[t.index()], program_.mesh);
  return Bytes(known);
}

}  // namespace hyperrun
