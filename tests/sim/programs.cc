#include "tests/sim/programs.h"

#include <algorithm>
#include <utility>

#include "runtime/cost/duration.h"

namespace hyperrun::testing {

SupernodeSpec slow_machine() {
  SupernodeSpec spec;
  spec.cube_flops = spec.vector_flops = spec.hbm_bandwidth = spec.link_bandwidth = 1e9;
  spec.link_latency = spec.launch_latency = Nanos(0);
  return spec;
}

ProgramBuilder::ProgramBuilder(std::vector<MeshAxis> axes) {
  program_.name = "test";
  program_.mesh.axes = std::move(axes);
}

ProgramBuilder& ProgramBuilder::compute(StreamKind stream, std::int64_t flops, std::vector<Event> waits) {
  return add(instr::Gemm{.m = 1, .n = 1, .k = flops / 2}, stream, std::move(waits));
}

ProgramBuilder& ProgramBuilder::collective(instr::CollectiveKind kind, std::int64_t inner,
                                           std::vector<Event> waits) {
  AxisList all;
  for (AxisId a = 0; a < program_.mesh.rank(); ++a) all.push_back(a);
  return collective(kind, all, inner, std::move(waits));
}

ProgramBuilder& ProgramBuilder::collective(instr::CollectiveKind kind, AxisList axes, std::int64_t inner,
                                           std::vector<Event> waits) {
  return add(instr::Collective{.kind = kind, .axes = std::move(axes), .inner = inner}, StreamKind::kComm,
             std::move(waits));
}

Plan ProgramBuilder::plan() const {
  return {.mesh = program_.mesh, .role_axes = {}, .roles = {Role{{program_}, {}}}};
}

ProgramBuilder& ProgramBuilder::add(InstrOp op, StreamKind stream, std::vector<Event> waits) {
  Instr instr;
  instr.op = std::move(op);
  instr.stream = stream;
  instr.waits = std::move(waits);
  instr.seq = ++seq_[static_cast<std::size_t>(stream)];
  program_.instrs.push_back(std::move(instr));
  return *this;
}

std::vector<std::vector<Span>> expected_spans(const Program& program, const SupernodeSpec& spec,
                                              const Topology& topology) {
  const auto devices = static_cast<std::size_t>(topology.size());
  std::vector<std::vector<Span>> spans(devices, std::vector<Span>(program.instrs.size()));
  const auto find = [&](StreamKind stream, std::int32_t seq) {
    for (std::size_t i = 0; i < program.instrs.size(); ++i)
      if (program.instrs[i].stream == stream && program.instrs[i].seq == seq) return i;
    return program.instrs.size();
  };
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    std::vector<std::size_t> before;
    for (const Event& e : instr.waits) before.push_back(find(e.stream, e.seq));
    if (instr.seq > 1) before.push_back(find(instr.stream, instr.seq - 1));
    for (auto& device : spans)
      for (const std::size_t b : before) device[i].begin = std::max(device[i].begin, device[b].end);
    for (std::size_t d = 0; d < devices; ++d) {
      std::vector<int> group{static_cast<int>(d)};
      if (const auto* c = std::get_if<instr::Collective>(&instr.op))
        group = program.mesh.group(static_cast<std::int64_t>(d), c->axes);
      std::int64_t last = 0;
      for (const int member : group) last = std::max(last, spans[static_cast<std::size_t>(member)][i].begin);
      spans[d][i].end =
          last + duration(instr, program.mesh, {shape_of(group, topology), {}}, machine_of(spec)).value;
    }
  }
  return spans;
}

}  // namespace hyperrun::testing
