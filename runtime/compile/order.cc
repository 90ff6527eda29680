#include "runtime/compile/order.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hyperrun {
namespace {

// What products take: state, or its copies of this step.
bool gathers_weights(const Program& program, const Instr& instr) {
  return std::holds_alternative<instr::Collective>(instr.op) &&
         std::all_of(instr.in.begin(), instr.in.end(), [&](const Operand& o) {
           const Buffer& b = program[o.buffer];
           return b.state || b.category == Category::kWeights;
         });
}

// (instruction that it follows, how many moved ones come before it there)
using Position = std::pair<std::size_t, std::size_t>;

}  // namespace

void start_collectives_early(Program& program, std::size_t update) {
  std::map<BufferId, Position> last_touch;
  std::vector<std::pair<Position, std::size_t>> order;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    Position at{i, 0};
    // Messages keep their order: the peer takes them in it.
    if (i >= update && instr.stream == StreamKind::kComm) {
      at = {0, 0};
      for (const Use& use : uses(instr)) {
        const auto touched = last_touch.find(use.operand.buffer);
        if (touched != last_touch.end()) at = std::max(at, touched->second);
      }
      ++at.second;
    }
    for (const Use& use : uses(instr)) {
      Position& last = last_touch[use.operand.buffer];
      last = std::max(last, at);
    }
    order.emplace_back(at, i);
  }
  std::stable_sort(order.begin(), order.end());
  std::vector<Instr> instrs;
  instrs.reserve(order.size());
  for (const auto& [position, i] : order) instrs.push_back(std::move(program.instrs[i]));
  program.instrs = std::move(instrs);
}

void prefetch_weights(Program& program, std::size_t update) {
  std::vector<std::size_t> gathers;
  for (std::size_t i = 0; i < update; ++i)
    if (gathers_weights(program, program.instrs[i])) gathers.push_back(i);
  std::vector<Instr> instrs;
  instrs.reserve(program.instrs.size());
  std::size_t started = 0;  // of the gathers
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const auto here = std::lower_bound(gathers.begin(), gathers.end(), i);
    if (here == gathers.end() || *here != i) {
      instrs.push_back(std::move(program.instrs[i]));
      continue;
    }
    const std::size_t wanted = std::min(static_cast<std::size_t>(here - gathers.begin()) + 2, gathers.size());
    for (; started < wanted; ++started) instrs.push_back(std::move(program.instrs[gathers[started]]));
  }
  program.instrs = std::move(instrs);
}

}  // namespace hyperrun
