#include "runtime/compile/early_updates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/cost/estimate.h"
#include "runtime/offload/timeline.h"

namespace hyperrun {
namespace {

bool is_update(const Instr& instr) { return std::holds_alternative<instr::AdamW>(instr.op); }

// The update has a fifth input: the clipping factor, which depends on the norm of all gradients.
bool clips(const Instr& update) { return update.in.size() > 4; }

// The first instruction behind all passes. Parts of the update that come before it stay in place.
std::size_t end_of_passes(const Program& program) {
  const auto last = std::ranges::find_if(program.instrs.rbegin(), program.instrs.rend(),
                                         [](const Instr& i) { return i.pass != Pass::kUpdate; });
  return static_cast<std::size_t>(program.instrs.rend() - last);
}

// SumSquares rounds the squares of each gradient to float32 and adds them in double, so splitting it by
// gradient gives the same bits.
void split_sums_of_squares(Program& program) {
  std::vector<Instr> instrs;
  instrs.reserve(program.instrs.size());
  for (Instr& instr : program.instrs) {
    if (!std::holds_alternative<instr::SumSquares>(instr.op) || instr.in.size() < 2) {
      instrs.push_back(std::move(instr));
      continue;
    }
    Instr sum = instr;
    sum.op = instr::AddScalars{};
    sum.in.clear();
    for (const Operand& gradient : instr.in) {
      Buffer b;
      b.name = program[gradient.buffer].name + ".squares";
      b.bytes = instr.out[0].bytes;
      b.category = program[instr.out[0].buffer].category;
      program.buffers.push_back(std::move(b));
      Instr part = instr;
      part.in = {gradient};
      part.out[0].buffer = BufferId(std::ssize(program.buffers) - 1);
      sum.in.push_back(part.out[0]);
      instrs.push_back(std::move(part));
    }
    instrs.push_back(std::move(sum));
  }
  program.instrs = std::move(instrs);
}

class UpdateMover {
 public:
  UpdateMover(const Program& program, const Machine& machine, int device)
      : program_(program),
        end_(end_of_passes(program)),
        durations_(estimate_durations(program, machine, device)),
        timeline_(timeline_of(program, durations_)),
        of_stream_(kStreams),
        touched_(program.buffers.size()) {
    for (std::size_t i = 0; i < end_; ++i)
      of_stream_[static_cast<std::size_t>(program.instrs[i].stream)].push_back(i);
  }

  // Returns an empty order if no update comes before the end of the passes.
  std::vector<std::int32_t> run() {
    const std::vector<bool> moves = moving_instructions();
    std::vector<std::pair<Position, std::int32_t>> order;
    order.reserve(program_.instrs.size());
    bool any = false;
    for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
      const Instr& instr = program_.instrs[i];
      const Moment m = moves[i] ? earliest(i) : Moment{unmoved(i), timeline_.end[i]};
      any = any || (is_update(instr) && m.at < before(end_));
      each_use(instr, [&](const Operand& o, bool, bool) {
        Moment& last = touched_[o.buffer.index()];
        last = {std::max(last.at, m.at), std::max(last.end, m.end)};
      });
      order.emplace_back(m.at, static_cast<std::int32_t>(i));
    }
    if (!any) return {};
    std::ranges::stable_sort(order);
    std::vector<std::int32_t> list;
    list.reserve(order.size());
    for (const auto& [position, i] : order) list.push_back(i);
    return list;
  }

 private:
  // A sort key: 2 i for what is inserted before instruction i, 2 i + 1 for instruction i itself. Equal keys
  // keep their order.
  using Position = std::size_t;
  static Position before(std::size_t instr) { return 2 * instr; }
  static Position unmoved(std::size_t instr) { return 2 * instr + 1; }
  struct Moment {
    Position at = 0;
    std::int64_t end = 0;  // ns
  };

  // Marks the instructions behind the passes that move along: updates, the producers of their inputs, the
  // consumers of their results, and squares of gradients. Messages keep their order, which the peer expects.
  std::vector<bool> moving_instructions() const {
    const std::size_t n = program_.instrs.size();
    std::vector<bool> goes(n), is_wanted(program_.buffers.size()), is_made(program_.buffers.size());
    for (std::size_t i = n; i-- > end_;) {
      const Instr& instr = program_.instrs[i];
      goes[i] = is_update(instr) || std::holds_alternative<instr::SumSquares>(instr.op) ||
                std::ranges::any_of(instr.out, [&](const Operand& o) { return is_wanted[o.buffer.index()]; });
      if (goes[i] && !std::holds_alternative<instr::SumSquares>(instr.op))
        for (const Operand& o : instr.in) is_wanted[o.buffer.index()] = true;
    }
    for (std::size_t i = end_; i < n; ++i) {
      const Instr& instr = program_.instrs[i];
      const bool follows = is_update(instr) || std::ranges::any_of(instr.in, [&](const Operand& o) {
                             return is_made[o.buffer.index()];
                           });
      goes[i] =
          (goes[i] || follows) && instr.stream != StreamKind::kSend && instr.stream != StreamKind::kRecv;
      if (follows)
        for (const Operand& o : instr.out) is_made[o.buffer.index()] = true;
    }
    return goes;
  }

  // The earliest place behind everything that touches the same buffers, where the stream would otherwise
  // idle.
  Moment earliest(std::size_t i) {
    const Instr& instr = program_.instrs[i];
    Moment ready;
    each_use(instr, [&](const Operand& o, bool, bool) {
      const Moment& last = touched_[o.buffer.index()];
      ready = {std::max(ready.at, last.at), std::max(ready.end, last.end)};
    });
    const std::vector<std::size_t>& others = of_stream_[static_cast<std::size_t>(instr.stream)];
    const auto is_over = std::ranges::partition_point(
        others, [&](std::size_t p) { return before(p) < ready.at || timeline_.begin[p] < ready.end; });
    const std::int64_t end = ready.end + durations_[i].value;
    if (is_over == others.end()) return {unmoved(i), end};
    return {before(*is_over), end};
  }

  const Program& program_;
  const std::size_t end_;
  const std::vector<Nanos> durations_;
  const Timeline timeline_;                          // of the usual order
  std::vector<std::vector<std::size_t>> of_stream_;  // by stream: instructions before the end of the passes
  std::vector<Moment> touched_;                      // by buffer
};

}  // namespace

bool may_come_early(const Program& program) {
  return std::ranges::any_of(program.instrs, [](const Instr& i) { return is_update(i) && !clips(i); });
}

std::vector<std::int32_t> early_updates(const Program& program, const Machine& machine, int device) {
  if (!may_come_early(program)) return {};
  Program split = program;
  split_sums_of_squares(split);
  return UpdateMover(split, machine, device).run();
}

bool do_in_order(Program& program, const std::vector<std::int32_t>& order) {
  split_sums_of_squares(program);
  if (order.size() != program.instrs.size()) return false;
  std::vector<Instr> instrs;
  instrs.reserve(order.size());
  for (const std::int32_t i : order) instrs.push_back(std::move(program.instrs[static_cast<std::size_t>(i)]));
  program.instrs = std::move(instrs);
  return true;
}

}  // namespace hyperrun
