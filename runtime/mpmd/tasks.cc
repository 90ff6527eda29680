#include "runtime/mpmd/tasks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/cost/estimate.h"

namespace hyperrun {

std::vector<StreamTask> tasks_of(const Program& program, const Machine& machine, int device) {
  const std::vector<Nanos> lasts = estimate_durations(program, machine, device);
  std::vector<std::vector<std::int32_t>> after = dependencies(program);
  std::vector<StreamTask> tasks;
  tasks.reserve(lasts.size());
  for (std::size_t i = 0; i < lasts.size(); ++i)
    tasks.push_back({program.instrs[i].stream, lasts[i], {}, std::move(after[i])});
  find_urgencies(tasks);
  return tasks;
}

std::vector<StreamTask> tasks_in(std::span<const StreamTask> tasks, const Window& window) {
  std::vector<StreamTask> own(tasks.begin() + window.begin, tasks.begin() + window.end);
  for (StreamTask& t : own) {
    std::erase_if(t.after, [&](std::int32_t before) { return before < window.begin; });
    for (std::int32_t& before : t.after) before -= window.begin;
  }
  return own;
}

std::vector<std::int32_t> identity_order(std::size_t n) {
  std::vector<std::int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void reorder(Program& program, const std::vector<std::int32_t>& order) {
  HR_CHECK(order.size() == program.instrs.size(), "an order of another Program");
  std::vector<Instr> instrs;
  instrs.reserve(order.size());
  for (const std::int32_t i : order) instrs.push_back(std::move(program.instrs[static_cast<std::size_t>(i)]));
  program.instrs = std::move(instrs);
}

Bytes live_peak(const Program& program) {
  std::vector<Bytes> change(program.instrs.size() + 1);
  std::vector<std::size_t> first(program.buffers.size(), program.instrs.size()), last(program.buffers.size());
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    each_use(program.instrs[i], [&](const Operand& o, bool, bool) {
      first[o.buffer.index()] = std::min(first[o.buffer.index()], i);
      last[o.buffer.index()] = i;
    });
  Bytes live{};
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.state) live += buffer.bytes;
    if (buffer.state || first[b] == program.instrs.size()) continue;
    change[first[b]] += buffer.bytes;
    change[last[b] + 1] -= buffer.bytes;
  }
  Bytes most = live;
  for (const Bytes c : change) most = std::max(most, live += c);
  return most;
}

}  // namespace hyperrun
