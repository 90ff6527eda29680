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

// Two sequences of tasks become one. The next is that of the two heads which can begin first as streams take
// them, of two that can begin at once that with the longer path behind it.
class Merging {
 public:
  using Halves = std::array<std::vector<std::int32_t>, 2>;  // numbers of tasks, ascending

  // Of tasks of a stretch; `after` has none from before it.
  Merging(std::span<const StreamTask> tasks, const Halves& halves)
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

  // What a task comes after has a lower number: of two heads that with the lower one has all of it.
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

// Collectives may have been moved out of their pass, and what adds an exchanged gradient to its sum.
bool stays_in_its_pass(const Instr& instr) {
  return instr.stream != StreamKind::kComm && !std::holds_alternative<instr::Accumulate>(instr.op);
}

struct Stretch {
  Window window;
  std::int32_t pair = 0, second = 0;  // where the second half begins
};

// From the first instruction of each pair to its last. Halves stand one after the other.
std::vector<Stretch> stretches(const Program& program) {
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

// What is of neither half goes with what it stands in.
Merging::Halves halves_of(const Program& program, const Stretch& stretch) {
  Merging::Halves halves;
  for (std::int32_t i = stretch.window.begin; i < stretch.window.end; ++i) {
    const std::int32_t own = program.instrs[at(i)].half;
    const bool is_of_it = own >= 0 && own / 2 == stretch.pair;
    halves[is_of_it ? at(own % 2) : i < stretch.second ? 0 : 1].push_back(i - stretch.window.begin);
  }
  return halves;
}

}  // namespace

std::vector<std::int32_t> plan_pairs(const Program& program, const Machine& machine, int device) {
  const std::vector<Stretch> list = stretches(program);
  if (list.empty()) return {};
  const std::vector<StreamTask> tasks = tasks_of(program, machine, device);
  std::vector<std::int32_t> order = as_it_stands(tasks.size());
  bool any = false;
  for (const Stretch& stretch : list) {
    const Window& window = stretch.window;
    std::vector<StreamTask> own = tasks_in(tasks, window);
    find_urgencies(own);  // paths up to the stretch's end: both halves are to have ended there
    const Merging::Halves halves = halves_of(program, stretch);
    std::vector<std::int32_t> merged = Merging(own, halves).run();
    if (length_of(own, merged) >= length_of(own, as_it_stands(own.size()))) continue;
    any = true;
    for (std::size_t i = 0; i < merged.size(); ++i) order[at(window.begin) + i] = window.begin + merged[i];
  }
  return any ? order : std::vector<std::int32_t>();
}

void apply_pairs(Program& program, const std::vector<std::int32_t>& order) {
  if (!order.empty()) put_in_order(program, order);
  for (Instr& instr : program.instrs) instr.half = -1;
}

}  // namespace hyperrun
