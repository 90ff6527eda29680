#include "runtime/sim/breakdown.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace hyperrun {
namespace {

enum class Kind : std::uint8_t { kOptimizer, kCompute, kCommunication, kTransfer };
constexpr std::size_t kKinds = 4;

bool optimizes(const InstrOp& op) {
  return std::holds_alternative<instr::AdamW>(op) || std::holds_alternative<instr::ClipFactor>(op) ||
         std::holds_alternative<instr::SumSquares>(op) || std::holds_alternative<instr::AddScalars>(op);
}

// Instructions on the transfer streams that read input from the host: a batch's text, a pass's requests. In a
// small pass their launches are some per cent of the time.
bool reads_input(const InstrOp& op) {
  return std::holds_alternative<instr::LoadBatch>(op) || std::holds_alternative<instr::LoadRequests>(op) ||
         std::holds_alternative<instr::LoadSamples>(op) || std::holds_alternative<instr::LoadVectors>(op);
}

Kind kind_of(const Instr& instr) {
  switch (instr.stream) {
    case StreamKind::kComm:
    case StreamKind::kSend:
    case StreamKind::kRecv: return Kind::kCommunication;
    case StreamKind::kDmaIn:
    case StreamKind::kDmaOut: return reads_input(instr.op) ? Kind::kCompute : Kind::kTransfer;
    default: return optimizes(instr.op) ? Kind::kOptimizer : Kind::kCompute;
  }
}

struct Change {
  std::int64_t time;
  Kind kind;
  int by;  // 1 begins, -1 ends
};

}  // namespace

Breakdown break_down(const TimedProgram& timed, std::span<const Nanos> durations, std::span<const Span> spans,
                     Nanos end) {
  std::vector<Change> changes;
  changes.reserve(2 * spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const std::int32_t collective = timed.collective_index(i);
    // A collective's time before its own duration is waiting.
    const std::int64_t begin = collective < 0
                                   ? spans[i].begin
                                   : spans[i].end - durations[static_cast<std::size_t>(collective)].value;
    const Kind kind = kind_of(timed.program().instrs[i]);
    changes.push_back({begin, kind, 1});
    changes.push_back({spans[i].end, kind, -1});
  }
  std::ranges::sort(changes, {}, &Change::time);
  std::array<int, kKinds> running{};
  const auto runs = [&](Kind k) { return running[static_cast<std::size_t>(k)] > 0; };
  Breakdown b;
  std::int64_t now = 0;
  const auto advance_to = [&](std::int64_t time) {
    Nanos& part = runs(Kind::kOptimizer) && !runs(Kind::kCompute) ? b.optimizer
                  : runs(Kind::kCompute)                          ? b.compute
                  : runs(Kind::kCommunication)                    ? b.communication
                  : runs(Kind::kTransfer)                         ? b.transfer
                                                                  : b.bubble;
    part += Nanos(time - now);
    now = time;
  };
  for (const Change& c : changes) {
    advance_to(c.time);
    running[static_cast<std::size_t>(c.kind)] += c.by;
  }
  advance_to(end.value);
  return b;
}

}  // namespace hyperrun
