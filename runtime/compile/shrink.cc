#include "runtime/compile/shrink.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/ir/shrink.h"

namespace hyperrun {
namespace {

using Compiler = Compiled (*)(const Job&, const Moves* like);

bool alike(const Instr& a, const Instr& b) {
  if (a.op.index() != b.op.index() || a.stream != b.stream || a.seq != b.seq || a.pass != b.pass)
    return false;
  const auto* c = std::get_if<instr::Collective>(&a.op);
  if (c == nullptr) return true;
  const auto& d = std::get<instr::Collective>(b.op);
  return c->kind == d.kind && c->axes == d.axes && c->peer == d.peer;
}

std::string told(const Program& p, std::size_t i) {
  if (i >= p.instrs.size()) return "its end";
  const Instr& instr = p.instrs[i];
  return std::string(name(instr.op)) + " (" + p.origins[static_cast<std::size_t>(instr.origin)] + ")";
}

void require_alike(const Program& small, const Program& original) {
  const std::size_t n = std::max(small.instrs.size(), original.instrs.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (i < small.instrs.size() && i < original.instrs.size() && alike(small.instrs[i], original.instrs[i]))
      continue;
    throw Error(Code::kBadLayout, "the small model's instruction " + std::to_string(i) + " is " +
                                      told(small, i) + ", the original's " + told(original, i))
        .at("run.shrink")
        .legal("divisors that leave the compiler's choices as they are")
        .fix("divide by less, or width, sequence and batch alike");
  }
}

// The small one's buffers share other places than the original's, so that each has waits that the other has
// not. All waits are for what was issued before: together they hold nothing up for ever.
void wait_for_the_same(Program& small, const Program& original) {
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
}

// Where buffers move because not all has room, fewer layers have as much less.
Job with_its_share(Job less, const Job& job, Compiler compiler) {
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
  Compiled original = compiler(with_its_share(with_fewer_layers(job), job, compiler), nullptr);
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
      wait_for_the_same(small, s.original.roles[r].programs[p]);
    }
  }
  verify(s.plan);
  const double ratio = static_cast<double>(s.plan.peak().value) / static_cast<double>(peak.value);
  s.job.supernode.hbm = Bytes(std::llround(std::ceil(static_cast<double>(job.supernode.hbm.value) * ratio)));
  return s;
}

}  // namespace

Scaled compile_to_scale(const Job& job, Bytes peak) { return to_scale(job, peak, compile, {"train"}); }

Scaled compile_generation_to_scale(const Job& job, Bytes peak) {
  return to_scale(job, peak, compile_generation, {"prefill", "decode"});
}

}  // namespace hyperrun
