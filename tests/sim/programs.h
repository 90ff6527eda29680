// Small Programs written by hand, and an independent calculation of the times of their instructions.
#pragma once

#include <vector>

#include "memory/host.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun::testing {

// Rates at which a flop, a byte of HBM and a byte on a link take 1 ns each; no latencies.
SupernodeSpec slow_machine();

// Adds instructions in order and numbers them in their streams.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::vector<MeshAxis> axes = {{"dp", 1}});

  // Adds a matrix product of so many (even) FLOPs, on any stream.
  ProgramBuilder& compute(StreamKind stream, std::int64_t flops, std::vector<Event> waits = {});
  // Adds a collective on the comm stream, along all axes of the mesh; `inner` is as in instr::Collective.
  ProgramBuilder& collective(instr::CollectiveKind kind, std::int64_t inner, std::vector<Event> waits = {});
  ProgramBuilder& collective(instr::CollectiveKind kind, AxisList axes, std::int64_t inner,
                             std::vector<Event> waits = {});

  Plan plan() const;  // a plan with the one program "test"

 private:
  ProgramBuilder& add(InstrOp op, StreamKind stream, std::vector<Event> waits);

  Program program_;
  std::array<std::int32_t, kStreams> seq_{};
};

// Spans of every device, by instruction. They come from relaxation over all devices in the order of the
// Program, as the rules of streams, events and groups state it; no queue, no folding.
std::vector<std::vector<Span>> expected_spans(const Program& program, const SupernodeSpec& spec,
                                              const Topology& topology);

}  // namespace hyperrun::testing
