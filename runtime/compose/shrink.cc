#include "runtime/compose/shrink.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/events.h"
#include "runtime/compile/place.h"
#include "runtime/ir/shrink.h"

namespace hyperrun {
namespace {

using Compiler = Compiled (*)(const Job&, const Moves* like);

bool alike(const RowTile& a, const RowTile& b) {
  return a.index == b.index && a.count == b.count && a.blocks == b.blocks;
}

bool alike(const Instr& a, const Instr& b) {
  if (a.op.index() != b.op.index() || a.stream != b.stream || a.seq != b.seq || a.pass != b.pass ||
      !alike(tile_of(a), tile_of(b)))
    return false;
  const auto* c = std::get_if<instr::Collective>(&a.op);
  if (c == nullptr) return true;
  const auto& d = std::get<instr::Collective>(b.op);
  return c->kind == d.kind && c->axes == d.axes && c->peer == d.peer;
}

std::string describe_instr(const Program& p, std::size_t i) {
  if (i >= p.instrs.size()) return "its end";
  const Instr& instr = p.instrs[i];
  return fmt::format("{} ({})", name(instr.op), p.origins[static_cast<std::size_t>(instr.origin)]);
}

void require_alike(const Program& small, const Program& original) {
  const std::size_t n = std::max(small.instrs.size(), original.instrs.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (i < small.instrs.size() && i < original.instrs.size() && alike(small.instrs[i], original.instrs[i]))
      continue;
    throw Error(Code::kBadLayout, fmt::format("the small model's instruction {} is {}, the original's {}", i,
                                              describe_instr(small, i), describe_instr(original, i)))
        .at("run.shrink")
        .legal("divisors that leave the compiler's choices as they are")
        .fix("divide by less, or width, sequence and batch alike");
  }
}

// The buffers of the tier that are not state.
std::vector<std::size_t> temporary_buffers(const Program& p, Tier tier) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < p.buffers.size(); ++i)
    if (!p.buffers[i].state && p.buffers[i].tier == tier) list.push_back(i);
  return list;
}

// Places each buffer as low as possible above all buffers that are below it in the original. So two buffers
// that do not overlap in the original do not overlap here either, and cause no wait that the original lacks.
void place_like(Program& small, const Program& original, Tier tier) {
  HR_CHECK(small.buffers.size() == original.buffers.size());
  std::vector<std::size_t> by_begin = temporary_buffers(small, tier);
  if (by_begin.empty()) return;
  const auto begin = [&](std::size_t i) { return original.buffers[i].offset; };
  const auto end = [&](std::size_t i) { return begin(i) + original.buffers[i].bytes; };
  std::vector<std::size_t> by_end = by_begin;
  std::ranges::sort(by_begin, {}, begin);
  std::ranges::sort(by_end, {}, end);
  const auto lowest = std::ranges::min(by_begin, {}, [&](std::size_t i) { return small.buffers[i].offset; });
  Bytes free = small.buffers[lowest].offset;
  Bytes& peak = small.peak[index_of(tier)];
  peak = Bytes(0);
  for (const Buffer& b : small.buffers)
    if (b.state && b.tier == tier) peak = std::max(peak, b.offset + b.bytes);
  const std::int64_t align = alignment_of(tier).value;
  auto below = by_end.begin();
  for (const std::size_t i : by_begin) {
    for (; end(*below) <= begin(i) && *below != i; ++below) {
      const Buffer& b = small.buffers[*below];
      free = std::max(free, Bytes((b.offset.value + b.bytes.value + align - 1) / align * align));
    }
    small.buffers[i].offset = free;
    peak = std::max(peak, free + small.buffers[i].bytes);
  }
}

// Makes the small Program wait for at least the same instructions as the original. Sizes do not all shrink by
// one ratio, so parts of two buffers may overlap in one Program and not in the other; hence the union of both
// waits. No deadlock can arise: every wait is for an instruction that was issued earlier.
void copy_waits(Program& small, const Program& original) {
  for (const Tier tier : {Tier::kHbm, Tier::kPool, Tier::kFlash}) place_like(small, original, tier);
  add_events(small);
  for (std::size_t i = 0; i < small.instrs.size(); ++i) {
    std::vector<Event>& waits = small.instrs[i].waits;
    for (const Event& e : original.instrs[i].waits) {
      const auto same = std::ranges::find(waits, e.stream, &Event::stream);
      if (same == waits.end())
        waits.push_back(e);
      else
        same->seq = std::max(same->seq, e.seq);
    }
  }
  verify(small);
}

// Lowers the HBM budget of the job with fewer layers by the ratio of the peaks without evictions. So the
// planner has to evict as large a share of the buffers as with all layers.
Job with_scaled_hbm(Job less, const Job& job, Compiler compiler) {
  if (job.memory.policy == "none") return less;
  const auto unmoved = [&](Job j) {
    j.memory.policy = "none";
    return static_cast<double>(compiler(j, nullptr).plan.peak().value);
  };
  less.supernode.hbm = Bytes(std::llround(static_cast<double>(job.supernode.hbm.value) *
                                          std::min(1.0, unmoved(less) / unmoved(job))));
  return less;
}

Scaled to_scale(const Job& job, Bytes peak, Compiler compiler, std::initializer_list<const char*> programs) {
  Compiled original = compiler(with_scaled_hbm(with_fewer_layers(job), job, compiler), nullptr);
  Scaled s{shrunk(job), {}, std::move(original.plan)};
  try {
    s.plan = compiler(s.job, &original.moves).plan;
  } catch (Error& e) {
    throw Error(e.code(), "the small model that would be executed: " + e.cause())
        .at("run.shrink")
        .legal(e.legal())
        .fix("divide by other numbers in run.shrink");
  }
  for (const char* name : programs) {
    const std::size_t p = s.plan.program_index(name);
    for (std::size_t r = 0; r < s.plan.roles.size(); ++r) {
      Program& small = s.plan.roles[r].programs[p];
      require_alike(small, s.original.roles[r].programs[p]);
      copy_waits(small, s.original.roles[r].programs[p]);
    }
  }
  verify(s.plan);
  const double ratio = static_cast<double>(s.plan.peak().value) / static_cast<double>(peak.value);
  s.job.supernode.hbm = Bytes(std::llround(std::ceil(static_cast<double>(job.supernode.hbm.value) * ratio)));
  return s;
}

}  // namespace

Scaled compile_to_scale(const Job& job, Bytes peak) {
  const auto compiler = [](const Job& j, const Moves* like) { return compile(j, like); };
  return to_scale(job, peak, compiler, {"train"});
}

Scaled compile_generation_to_scale(const Job& job, Bytes peak) {
  return to_scale(job, peak, compile_generation, {"prefill", "decode"});
}

}  // namespace hyperrun
