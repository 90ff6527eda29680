#include "runtime/compile/order.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

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

bool completes_sums(const Instr& instr) {
  const auto* c = std::get_if<instr::Collective>(&instr.op);
  return c != nullptr &&
         (c->kind == instr::CollectiveKind::kReduceScatter || c->kind == instr::CollectiveKind::kAllReduce);
}

// Of what is then sent.
bool rounds_gradients(const Instr& instr) {
  return std::holds_alternative<instr::Cast>(instr.op) && rounds(instr);
}

// Of instructions `after` to `before`, both left out: the first product; `before` if there is none.
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

// (instruction that it follows, how many moved ones come before it there)
using Position = std::pair<std::size_t, std::size_t>;

}  // namespace

void start_collectives_early(Program& program, std::size_t update) {
  // Other stages wait for what the passes send, and nobody for the update: before the last message its
  // collectives would only hold up those of the passes.
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
    // Messages keep their order: the peer takes them in it.
    if (i >= update && (instr.stream == StreamKind::kComm || rounds_gradients(instr))) {
      at = std::max(touched_last(), sent);
      ++at.second;
    } else if (completes_sums(instr)) {
      // What has just been received stays where it is used: before, it would have others wait for a message.
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
  constexpr std::size_t kWaiting = 2;  // the gradient of a norm comes between those of products
  std::vector<Instr> instrs;
  instrs.reserve(program.instrs.size());
  std::deque<Instr> waiting;
  const auto add_first = [&](std::size_t n) {
    for (; n > 0; --n) instrs.push_back(std::move(waiting.front())), waiting.pop_front();
  };
  std::vector<bool> exchanged(program.buffers.size());  // last written by a collective
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
