#include "launcher/tracing.h"

#include <string>
#include <vector>

namespace hyperrun {
namespace {

void add_slice(TraceWriter& trace, const Program& program, int device, std::int64_t step, std::size_t index,
               const Span& span) {
  const Instr& instr = program.instrs[index];
  const Work w = work(instr, program.mesh);
  std::vector<TraceArg> args{{"instruction", static_cast<std::int64_t>(index)}, {"hbm bytes", w.hbm.value}};
  if (w.flops.value > 0) args.push_back({"flops", w.flops.value});
  std::vector<std::uint64_t> flows;
  std::string axes;
  std::string_view category = name(instr.op);
  if (const auto* c = std::get_if<instr::Collective>(&instr.op)) {
    axes = program.mesh.to_string(c->axes);
    args.push_back({"axes", std::string_view(axes)});
    args.push_back({"wire bytes", w.wire.value});
    category = name(c->kind);
    const std::vector<int> group = program.mesh.group(device, c->axes);
    flows.push_back(
        flow_id({static_cast<std::uint64_t>(step), index, static_cast<std::uint64_t>(group.front())}));
  }
  const std::string_view origin =
      instr.origin < 0 ? category : std::string_view(program.origins[static_cast<std::size_t>(instr.origin)]);
  trace.slice({device, static_cast<TraceStream>(instr.stream), origin, category, Nanos(span.begin),
               Nanos(span.end), args, flows});
}

}  // namespace

void add_invocation(TraceWriter& trace, const Program& program, int device, std::int64_t step,
                    const InvocationStats& stats, std::int64_t start) {
  for (std::size_t i = 0; i < stats.spans.size(); ++i)
    add_slice(trace, program, device, step, i, {stats.spans[i].begin - start, stats.spans[i].end - start});
  for (const auto& [time, bytes] : stats.hbm)
    trace.counter(device, "HBM bytes", Nanos(time - start), Bytes(bytes));
}

}  // namespace hyperrun
