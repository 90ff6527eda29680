#include "runtime/mpmd/pairs.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

#include "runtime/base/error.h"
#include "runtime/mpmd/tasks.h"
#include "runtime/mpmd/windows.h"

namespace hyperrun {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

// Merges two sequences of tasks. The head that can begin first comes next; if both can begin at the same
// time, the one with the longer path behind it.
class HalfMerger {
 public:
  using Halves = std::array<std::vector<std::int32_t>, 2>;  // numbers of tasks, ascending

  // `tasks` of one stretch wait only for each other.
  HalfMerger(std::span<const StreamTask> tasks, const Halves& halves)
      : tasks_(tasks), halves_(halves), ends_(tasks.size()), taken_(tasks.size()) {}

  std::vector<std::int32_t> run() {
    std::vector<std::int32_t> order;
    while (order.size() < tasks_.size()) {
      const std::size_t half = next();
      const std::int32_t task = halves_[half][heads_[half]++];
      ends_[at(task)] = free_[stream(task)] = begin(task) + tasks_[at(task)].lasts;
      taken_[at(task)] = true;
      order.push_back(task);
    }
    return order;
  }

 private:
  std::size_t stream(std::int32_t task) const { return static_cast<std::size_t>(tasks_[at(task)].stream); }

  bool can_begin(std::size_t half) const {
    if (heads_[half] == halves_[half].size()) return false;
    const std::vector<std::int32_t>& after = tasks_[at(halves_[half][heads_[half]])].after;
    return std::ranges::all_of(after, [&](std::int32_t before) { return taken_[at(before)]; });
  }

  Nanos begin(std::int32_t task) const {
    Nanos t = free_[stream(task)];
    for (const std::int32_t before : tasks_[at(task)].after) t = std::max(t, ends_[at(before)]);
    return t;
  }

  // Tasks wait only for lower numbers, so at least the lower of the two heads can begin.
  std::size_t next() const {
    if (!can_begin(0)) return 1;
    if (!can_begin(1)) return 0;
    const std::int32_t a = halves_[0][heads_[0]], b = halves_[1][heads_[1]];
    const Nanos of_a = begin(a), of_b = begin(b);
    if (of_a != of_b) return of_a < of_b ? 0 : 1;
    return tasks_[at(a)].urgency >= tasks_[at(b)].urgency ? 0 : 1;
  }

  std::span<const StreamTask> tasks_;
  const Halves& halves_;
  std::array<std::size_t, 2> heads_{};
  std::array<Nanos, kStreams> free_{};
  std::vector<Nanos> ends_;
  std::vector<bool> taken_;
};

// Earlier passes of the compiler may move collectives, and additions of exchanged gradients, out of their
// pass.
bool stays_in_its_pass(const Instr& instr) {
  return instr.stream != StreamKind::kComm && !std::holds_alternative<instr::Accumulate>(instr.op);
}

struct Stretch {
  Window window;
  std::int32_t pair = 0;    // number
  std::int32_t second = 0;  // the first instruction of the second half
};

// The ranges from the first instruction of each pair to its last. In them one half stands behind the other.
std::vector<Stretch> pair_stretches(const Program& program) {
  std::vector<Stretch> list;
  for (std::int32_t i = 0; i < std::ssize(program.instrs); ++i) {
    const Instr& instr = program.instrs[at(i)];
    if (instr.half < 0 || !stays_in_its_pass(instr)) continue;
    if (list.empty() || list.back().pair != instr.half / 2)
      list.push_back({.window = {i, i}, .pair = instr.half / 2, .second = -1});
    Stretch& stretch = list.back();
    if (instr.half % 2 == 1 && stretch.second < 0) stretch.second = i;
    stretch.window.end = i + 1;
  }
  std::erase_if(list, [](const Stretch& s) { return s.second < 0; });
  return list;
}

// Instructions of neither half join the half that they stand in.
HalfMerger::Halves halves_of(const Program& program, const Stretch& stretch) {
  HalfMerger::Halves halves;
  for (std::int32_t i = stretch.window.begin; i < stretch.window.end; ++i) {
    const std::int32_t own = program.instrs[at(i)].half;
    const bool is_of_it = own >= 0 && own / 2 == stretch.pair;
    halves[is_of_it ? at(own % 2) : i < stretch.second ? 0 : 1].push_back(i - stretch.window.begin);
  }
  return halves;
}

}  // namespace

std::vector<std::int32_t> plan_pairs(const Program& program, const Machine& machine, int device) {
  const std::vector<Stretch> list = pair_stretches(program);
  if (list.empty()) return {};
  const std::vector<StreamTask> tasks = tasks_of(program, machine, device);
  std::vector<std::int32_t> order = identity_order(tasks.size());
  bool any = false;
  for (const Stretch& stretch : list) {
    const Window& window = stretch.window;
    std::vector<StreamTask> own = tasks_in(tasks, window);
    find_urgencies(own);  // paths to the end of the stretch, where both halves must have ended
    const HalfMerger::Halves halves = halves_of(program, stretch);
    std::vector<std::int32_t> merged = HalfMerger(own, halves).run();
    if (makespan(own, merged) >= makespan(own, identity_order(own.size()))) continue;
    any = true;
    for (std::size_t i = 0; i < merged.size(); ++i) order[at(window.begin) + i] = window.begin + merged[i];
  }
  return any ? order : std::vector<std::int32_t>();
}

void apply_pairs(Program& program, const std::vector<std::int32_t>& order) {
  if (!order.empty()) reorder(program, order);
  for (Instr& instr : program.instrs) instr.half = -1;
}

}  // namespace hyperrun
