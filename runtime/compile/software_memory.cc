#include "runtime/compile/software_memory.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <variant>

#include "runtime/cost/fusion_groups.h"
#include "runtime/ir/gradient_sums.h"

namespace hyperrun {
namespace {

template <class... Ops>
bool has_any(const Program& program) {
  return std::ranges::any_of(program.instrs,
                             [](const Instr& i) { return (std::holds_alternative<Ops>(i.op) || ...); });
}

using Shape = std::pair<std::int64_t, std::int64_t>;  // outputs, inputs

// The shape of the weight whose gradient an instruction makes; {0, 0} if it makes none. Of experts it is that
// of one of them.
Shape made_by(const Program& program, const Instr& instr) {
  if (instr.out.empty() || program[instr.out[0].buffer].category != Category::kGradients) return {};
  if (const auto* product = std::get_if<instr::Gemm>(&instr.op)) return {product->m, product->n};
  if (const auto* outer = std::get_if<instr::GroupedOuter>(&instr.op)) return {outer->m, outer->n};
  return {};
}

// Elements of one tensor of each shape that weights of products have. Weights whose products are joined are
// one.
std::int64_t elements_of_shapes(const Program& program, bool joined) {
  const FusionGroups groups = fusion_groups_of(program, joined);
  std::set<Shape> shapes;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    Shape shape = made_by(program, program.instrs[i]);
    if (shape == Shape{}) continue;
    if (joined) {
      if (groups[i].front() != static_cast<std::int32_t>(i)) continue;
      shape.first = 0;
      for (const std::int32_t member : groups[i])
        shape.first += made_by(program, program.instrs[static_cast<std::size_t>(member)]).first;
    }
    shapes.insert(shape);
  }
  std::int64_t elements = 0;
  for (const auto& [outputs, inputs] : shapes) elements += outputs * inputs;
  return elements;
}

// The groups that a device is a member of: one for each list of axes along which it communicates.
std::size_t communicators(const Program& program) {
  std::set<AxisList> along;
  for (const Instr& instr : program.instrs)
    if (const auto* c = std::get_if<instr::Collective>(&instr.op)) along.insert(c->axes);
  return along.size();
}

Bytes kept_besides(const Program& program, const Software& software) {
  const SoftwareMemory& m = software.memory;
  double bytes = m.workspace.value;
  if (m.unused_gradients.value > 0)
    bytes += m.unused_gradients.value *
             static_cast<double>(elements_of_shapes(program, software.issue.joined.value > 0));
  if (has_any<instr::SoftmaxStats>(program)) bytes += m.head_workspace.value;
  bytes += m.communicator.value * static_cast<double>(communicators(program));
  if (has_any<instr::GroupedGemm>(program)) bytes += m.expert_workspace.value;
  return Bytes(std::llround(std::ceil(bytes)));
}

// Buffers that a device reduces with others and keeps a part of. A framework keeps the part in place, a
// Program apart.
std::set<std::int32_t> scattered(const Program& program) {
  std::set<std::int32_t> buffers;
  for (const Instr& instr : program.instrs)
    if (const auto* c = std::get_if<instr::Collective>(&instr.op);
        c != nullptr && c->kind == instr::CollectiveKind::kReduceScatter)
      buffers.insert(instr.in[0].buffer.value);
  return buffers;
}

void keep_all_the_time(Program& program, const SoftwareMemory& memory) {
  const std::set<std::int32_t> apart = scattered(program);
  if (memory.lasting_gradients.value > 0)
    for (const std::int32_t b : gradient_sums(program))
      if (!apart.contains(b)) program.buffers[static_cast<std::size_t>(b)].state = true;
  if (memory.lasting_copies.value > 0)
    for (Buffer& b : program.buffers)
      if (b.category == Category::kWeights) b.state = true;
}

}  // namespace

void add_software_memory(std::vector<Program>& programs, const Job& job) {
  const auto& machine = job.supernode.machine;
  if (!machine || machine->software.name.empty()) return;
  for (Program& program : programs) {
    if (program.name != "train") continue;
    const Bytes bytes = kept_besides(program, machine->software);
    if (job.memory.policy == "none") keep_all_the_time(program, machine->software.memory);
    if (bytes.value > 0)
      program.buffers.push_back(
          {.name = "software", .bytes = bytes, .category = Category::kSoftware, .state = true});
  }
}

}  // namespace hyperrun
