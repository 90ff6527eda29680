#include "runtime/report/instruction_trace.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hyperrun {
namespace {

// How many messages a device has sent to and received from each peer so far.
using MessageCounts = std::map<std::pair<instr::CollectiveKind, std::int32_t>, std::uint64_t>;

// The flow that joins the slices of those that take part: the members of a collective have its index in
// common, the two sides of a message its number among those of the pair.
std::uint64_t flow_of(const instr::Collective& c, const std::vector<int>& group, int device,
                      std::int64_t step, std::size_t index, MessageCounts& messages) {
  const auto number = static_cast<std::uint64_t>(step);
  if (!instr::is_message(c.kind)) return flow_id({number, index, static_cast<std::uint64_t>(group.front())});
  const auto peer = static_cast<std::uint64_t>(group[static_cast<std::size_t>(c.peer)]);
  const auto self = static_cast<std::uint64_t>(device);
  const bool sends = c.kind == instr::CollectiveKind::kSend;
  return flow_id({number, messages[{c.kind, c.peer}]++, sends ? self : peer, sends ? peer : self, 1});
}

void add_slice(TraceWriter& trace, const Program& program, int device, std::int64_t step, std::size_t index,
               const Span& span, MessageCounts& messages) {
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
    flows.push_back(flow_of(*c, program.mesh.group(device, c->axes), device, step, index, messages));
  }
  const std::string_view origin =
      instr.origin < 0 ? category : std::string_view(program.origins[static_cast<std::size_t>(instr.origin)]);
  trace.slice({device, static_cast<TraceStream>(instr.stream), origin, category, Nanos(span.begin),
               Nanos(span.end), args, flows});
}

}  // namespace

void add_invocation(TraceWriter& trace, const Program& program, int device, std::int64_t step,
                    const InvocationStats& stats, std::int64_t start) {
  MessageCounts messages;
  for (std::size_t i = 0; i < stats.spans.size(); ++i)
    add_slice(trace, program, device, step, i, {stats.spans[i].begin - start, stats.spans[i].end - start},
              messages);
  for (const Tier tier : {Tier::kHbm, Tier::kPool, Tier::kFlash}) {
    const std::string counter = tier == Tier::kHbm ? "HBM bytes" : std::string(name(tier)) + " bytes";
    for (const auto& [time, bytes] : stats.live[index_of(tier)])
      trace.counter(device, counter, Nanos(time - start), Bytes(bytes));
  }
}

}  // namespace hyperrun
