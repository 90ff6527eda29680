#include "runtime/compile/fits.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/compile/compile.h"

namespace hyperrun {
namespace {

bool live_at(const Buffer& b, Tier tier, std::int32_t i) {
  return b.tier == tier && (b.state || (b.first <= i && i <= b.last));
}

// The instruction at which the most bytes are live.
std::int32_t fullest(const Program& program, Tier tier) {
  std::vector<std::int64_t> change(program.instrs.size() + 1, 0);
  for (const Buffer& b : program.buffers) {
    if (b.state || b.first < 0 || b.tier != tier) continue;
    change[static_cast<std::size_t>(b.first)] += b.bytes.value;
    change[static_cast<std::size_t>(b.last) + 1] -= b.bytes.value;
  }
  std::int64_t live = 0, most = -1;
  std::int32_t where = 0;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    live += change[i];
    if (live > most) most = live, where = static_cast<std::int32_t>(i);
  }
  return where;
}

// The instructions that wrote the buffer's bytes and that use them next, in words. The next use of state may
// be in the next invocation.
std::string uses_around(const Program& program, std::size_t buffer, std::int32_t where) {
  const auto touches = [&](std::int32_t i, bool by_writing) {
    bool any = false;
    each_use(program.instrs[static_cast<std::size_t>(i)], [&](const Operand& o, bool, bool write) {
      any = any || (o.buffer.index() == buffer && (write || !by_writing));
    });
    return any;
  };
  const auto origin = [&](std::int32_t i) {
    return program.origins[static_cast<std::size_t>(program.instrs[static_cast<std::size_t>(i)].origin)];
  };
  const auto n = static_cast<std::int32_t>(program.instrs.size());
  std::int32_t maker = where, user = where + 1;
  while (maker >= 0 && !touches(maker, true)) --maker;
  while (user < n && !touches(user, false)) ++user;
  return (maker < 0 ? std::string("there from the start") : "made by " + origin(maker)) +
         (user == n ? ", not used again" : ", next used by " + origin(user));
}

std::string largest_tensors(const Program& program, Tier tier, std::int32_t where) {
  std::vector<const Buffer*> live;
  for (const Buffer& b : program.buffers)
    if (live_at(b, tier, where)) live.push_back(&b);
  std::stable_sort(live.begin(), live.end(),
                   [](const Buffer* x, const Buffer* y) { return x->bytes > y->bytes; });
  std::string text;
  for (std::size_t i = 0; i < live.size() && i < 6; ++i)
    text +=
        fmt::format("\n    {}  {}  {}, {}", live[i]->name, to_string(live[i]->bytes), name(live[i]->category),
                    uses_around(program, static_cast<std::size_t>(live[i] - program.buffers.data()), where));
  return text;
}

std::string by_category(const Program& program, Tier tier, std::int32_t where) {
  std::array<Bytes, kCategories> sums{};
  for (const Buffer& b : program.buffers)
    if (live_at(b, tier, where)) sums[static_cast<std::size_t>(b.category)] += b.bytes;
  std::vector<std::string> list;
  for (std::size_t c = 0; c < kCategories; ++c)
    if (sums[c].value > 0)
      list.push_back(fmt::format("{} {}", name(static_cast<Category>(c)), to_string(sums[c])));
  return joined(list);
}

// The Program that needs most of the tier: the budget that it needs is enough for all.
const Program& fullest_program(const Plan& plan, Tier tier) {
  const Program* most = &plan.roles.front().programs.front();
  for (const Role& role : plan.roles)
    for (const Program& p : role.programs)
      if (p.peak[index_of(tier)] > most->peak[index_of(tier)]) most = &p;
  return *most;
}

std::string bytes(Bytes b) { return fmt::format("{} bytes ({})", b.value, to_string(b)); }

// Lines of text about the fullest instruction.
std::string at_the_peak(const Program& program, Tier tier) {
  const std::int32_t where = fullest(program, tier);
  const Instr& instr = program.instrs[static_cast<std::size_t>(where)];
  return fmt::format("\n  at the peak, instruction {} ({}): {}\n  the largest tensors live there:{}", where,
                     program.origins[static_cast<std::size_t>(instr.origin)],
                     by_category(program, tier, where), largest_tensors(program, tier, where));
}

}  // namespace

void check_fits(const Plan& plan, Bytes budget) {
  if (plan.peak() <= budget) return;
  const Program& program = fullest_program(plan, Tier::kHbm);
  const Bytes peak = plan.peak();
  throw Error(Code::kDoesNotFit,
              fmt::format("program {} needs {} of HBM on each device, the budget is {} ({}){}", program.name,
                          bytes(peak), budget.value, to_string(budget), at_the_peak(program, Tier::kHbm)))
      .at("supernode.hbm")
      .legal(fmt::format("{} bytes or more", peak.value));
}

std::string what_fills(const Plan& plan, Tier tier) {
  const Program& program = fullest_program(plan, tier);
  return fmt::format("\n  program {} needs {} of it for one device{}", program.name,
                     bytes(program.peak[index_of(tier)]), at_the_peak(program, tier));
}

void check_fits(const Plan& plan, const SupernodeSpec& spec) {
  check_fits(plan, spec.hbm);
  for (const auto& [tier, budget] : {std::pair{Tier::kPool, spec.pool}, {Tier::kFlash, spec.flash}}) {
    const Bytes needed = plan.of_all_devices(tier);
    if (needed <= budget) continue;
    const std::string what(name(tier));
    throw Error(Code::kDoesNotFit,
                fmt::format("what lies beyond HBM takes {} of the {}, all devices together; the budget "
                            "is {} ({}){}",
                            bytes(needed), what, budget.value, to_string(budget), what_fills(plan, tier)))
        .at("supernode." + what)
        .legal(fmt::format("{} bytes or more", needed.value))
        .fix(fmt::format(
            "raise supernode.{} to \"{} B\", or let less move: raise supernode.hbm, or name fewer "
            "memory.tensors",
            what, needed.value));
  }
}

}  // namespace hyperrun
