#include "runtime/ir/collective_args.h"

namespace hyperrun {

CollectiveArgs collective_args(const instr::Collective& c, int p) {
  CollectiveArgs args;
  switch (c.kind) {
    case instr::CollectiveKind::kAllReduce: args.kind = Collective::kAllReduce; break;
    case instr::CollectiveKind::kReduceScatter: args.kind = Collective::kReduceScatter; break;
    case instr::CollectiveKind::kAllGather: args.kind = Collective::kAllGather; break;
    case instr::CollectiveKind::kAllToAll: args.kind = Collective::kAllToAll; break;
    case instr::CollectiveKind::kShift: args.kind = Collective::kShift; break;
    case instr::CollectiveKind::kSend: args.kind = Collective::kSend; break;
    case instr::CollectiveKind::kRecv: args.kind = Collective::kRecv; break;
    case instr::CollectiveKind::kAllToAllV: args.kind = Collective::kAllToAll; break;
  }
  args.dtype = c.dtype;
  args.op = c.reduction == Reduction::kSum ? ReduceOp::kSum : ReduceOp::kMax;
  args.outer = c.outer;
  args.inner = c.inner;
  args.peer = c.peer;
  if (c.kind == instr::CollectiveKind::kAllToAllV) args.all_to_all = {1, p, 1, p, c.outer * c.inner, false};
  if (c.kind != instr::CollectiveKind::kAllToAll) return args;
  const std::int64_t from = c.from * p, to = c.to * p;  // sizes of the undivided dimensions
  args.all_to_all = c.gather_first ? AllToAllShape{c.outer, from, c.middle, to, c.inner, true}
                                   : AllToAllShape{c.outer, to, c.middle, from, c.inner, false};
  return args;
}

}  // namespace hyperrun
