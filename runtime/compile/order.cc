#include "runtime/compile/order.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

namespace hyperrun {
namespace {

// True for collectives that gather weights: their inputs are state, or this step's copies of it.
bool gathers_weights(const Program& program, const Instr& instr) {
  return std::holds_alternative<instr::Collective>(instr.op) &&
         std::all_of(instr.in.begin(), instr.in.end(), [&](const Operand& o) {
           const Buffer& b = program[o.buffer];
           return b.state || b.category == Category::kWeights;
         });
}

bool completes_sums(const Instr& instr) {
  const auto* c = std::get_if<instr::Collective>(&instr.op);
  return c != nullptr &&
         (c->kind == instr::CollectiveKind::kReduceScatter || c->kind == instr::CollectiveKind::kAllReduce);
}

// True for casts that round gradients before they are sent.
bool rounds_gradients(const Instr& instr) {
  return std::holds_alternative<instr::Cast>(instr.op) && rounds(instr);
}

// The first product among the instructions between `after` and `before`, both excluded; `before` if there is
// none.
std::size_t product_between(const Program& program, std::size_t after, std::size_t before) {
  for (std::size_t i = after + 1; i < before; ++i)
    if (program.instrs[i].stream == StreamKind::kCube) return i;
  return before;
}

bool touches(const Instr& instr, BufferId buffer) {
  bool found = false;
  each_use(instr, [&](const Operand& o, bool, bool) { found = found || o.buffer == buffer; });
  return found;
}

// A place in the new order: the instruction that it follows, and the number of moved ones before it there.
using Position = std::pair<std::size_t, std::size_t>;

}  // namespace

void start_collectives_early(Program& program, std::size_t update) {
  // Collectives of the update stay behind the last message of the passes. Other stages wait for messages, but
  // nobody waits for the update; earlier, its collectives would only delay those of the passes.
  Position sent{0, 0};
  for (std::size_t i = 0; i < update; ++i)
    if (program.instrs[i].stream == StreamKind::kSend) sent = {i, 0};
  std::vector<std::optional<Position>> last_touch(program.buffers.size());
  std::vector<std::pair<Position, std::size_t>> order;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    Position at{i, 0};
    const auto touched_last = [&] {
      Position latest{0, 0};
      each_use(instr, [&](const Operand& o, bool, bool) {
        latest = std::max(latest, last_touch[o.buffer.index()].value_or(latest));
      });
      return latest;
    };
    // Messages keep their order, because the peer receives them in that order.
    if (i >= update && (instr.stream == StreamKind::kComm || rounds_gradients(instr))) {
      at = std::max(touched_last(), sent);
      ++at.second;
    } else if (completes_sums(instr)) {
      // A collective of a tensor just received is not moved: others behind it would wait for the message.
      const Position ready = touched_last();
      const bool received = program.instrs[ready.first].stream == StreamKind::kRecv;
      if (const std::size_t product = product_between(program, ready.first, i); product < i && !received)
        at = {product - 1, ready.first == product - 1 ? ready.second + 1 : 1};
    }
    each_use(instr, [&](const Operand& o, bool, bool) {
      std::optional<Position>& last = last_touch[o.buffer.index()];
      last = std::max(last.value_or(at), at);
    });
    order.emplace_back(at, i);
  }
  if (std::is_sorted(order.begin(), order.end())) return;
  std::stable_sort(order.begin(), order.end());
  std::vector<Instr> instrs;
  instrs.reserve(order.size());
  for (const auto& [position, i] : order) instrs.push_back(std::move(program.instrs[i]));
  program.instrs = std::move(instrs);
}

void add_exchanged_gradients_late(Program& program, std::size_t update) {
  const auto end = program.instrs.begin() + static_cast<std::ptrdiff_t>(update);
  if (std::none_of(program.instrs.begin(), end,
                   [](const Instr& i) { return std::holds_alternative<instr::Accumulate>(i.op); }))
    return;
  constexpr std::size_t kWaiting = 2;  // more than 1, as gradients of norms come between those of products
  std::vector<Instr> instrs;
  instrs.reserve(program.instrs.size());
  std::deque<Instr> waiting;
  const auto add_first = [&](std::size_t n) {
    for (; n > 0; --n) instrs.push_back(std::move(waiting.front())), waiting.pop_front();
  };
  std::vector<bool> exchanged(program.buffers.size());  // buffers that a collective wrote last
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    Instr& instr = program.instrs[i];
    const bool adds = i < update && std::holds_alternative<instr::Accumulate>(instr.op) &&
                      exchanged[instr.in[0].buffer.index()];
    if (i >= update) add_first(waiting.size());
    for (std::size_t w = waiting.size(); w > 0; --w)
      if (touches(instr, waiting[w - 1].in[0].buffer) || touches(instr, waiting[w - 1].out[0].buffer)) {
        add_first(w);
        break;
      }
    for (const Operand& o : instr.out) exchanged[o.buffer.index()] = instr.stream == StreamKind::kComm;
    if (!adds) {
      instrs.push_back(std::move(instr));
      continue;
    }
    if (waiting.size() == kWaiting) add_first(1);
    waiting.push_back(std::move(instr));
  }
  add_first(waiting.size());
  program.instrs = std::move(instrs);
}

void prefetch_weights(Program& program, std::size_t update) {
  std::vector<std::size_t> gathers;
  for (std::size_t i = 0; i < update; ++i)
    if (gathers_weights(program, program.instrs[i])) gathers.push_back(i);
  if (gathers.empty()) return;
  std::vector<Instr> instrs;
  instrs.reserve(program.instrs.size());
  std::size_t started = 0;  // number of gathers placed so far
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
