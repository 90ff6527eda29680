#include "runtime/mpmd/pairs.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

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

// From the first instruction of each pair to its last, or to the next pair.
std::vector<Window> stretches(const Program& program) {
  std::vector<Window> list;
  std::vector<std::int32_t> first, last;
  for (std::int32_t i = 0; i < std::ssize(program.instrs); ++i) {
    const std::int32_t half = program.instrs[at(i)].half;
    if (half < 0) continue;
    const std::size_t pair = at(half / 2);
    if (pair >= first.size()) first.resize(pair + 1, -1), last.resize(pair + 1, -1);
    if (first[pair] < 0) first[pair] = i;
    last[pair] = i;
  }
  for (std::size_t p = 0; p < first.size(); ++p) {
    if (first[p] < 0) continue;
    const std::int32_t next = p + 1 < first.size() && first[p + 1] >= 0 ? first[p + 1] : last[p] + 1;
    const std::int32_t begin = list.empty() ? first[p] : std::max(first[p], list.back().end);
    if (const std::int32_t end = std::min(last[p] + 1, next); begin < end) list.push_back({begin, end});
  }
  return list;
}

// What is of no half goes with what stands before it.
Merging::Halves halves_of(const Program& program, const Window& window) {
  Merging::Halves halves;
  std::size_t half = 0;
  for (std::int32_t i = window.begin; i < window.end; ++i) {
    if (const std::int32_t own = program.instrs[at(i)].half; own >= 0) half = at(own % 2);
    halves[half].push_back(i - window.begin);
  }
  return halves;
}

// With paths up to the stretch's end: both halves are to have ended there.
std::vector<StreamTask> tasks_in(std::span<const StreamTask> tasks, const Window& window) {
  std::vector<StreamTask> own(tasks.begin() + window.begin, tasks.begin() + window.end);
  for (StreamTask& t : own) {
    std::erase_if(t.after, [&](std::int32_t before) { return before < window.begin; });
    for (std::int32_t& before : t.after) before -= window.begin;
  }
  find_urgencies(own);
  return own;
}

}  // namespace

std::vector<std::int32_t> plan_pairs(const Program& program, const Machine& machine, int device) {
  const std::vector<Window> windows = stretches(program);
  if (windows.empty()) return {};
  const std::vector<StreamTask> tasks = tasks_of(program, machine, device);
  std::vector<std::int32_t> order = as_it_stands(tasks.size());
  bool any = false;
  for (const Window& window : windows) {
    const std::vector<StreamTask> own = tasks_in(tasks, window);
    const Merging::Halves halves = halves_of(program, window);
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
