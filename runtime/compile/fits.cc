#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"

namespace hyperrun {
namespace {

bool live_at(const Buffer& b, std::int32_t i) {
  return b.tier == Tier::kHbm && (b.state || (b.first <= i && i <= b.last));
}

// The instruction at which the most bytes are live.
std::int32_t fullest(const Program& program) {
  std::vector<std::int64_t> change(program.instrs.size() + 1, 0);
  for (const Buffer& b : program.buffers) {
    if (b.state || b.first < 0 || b.tier != Tier::kHbm) continue;
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

// Who made what it holds at an instruction, and who uses it next: of state perhaps in the next invocation.
std::string life_of(const Program& program, std::size_t buffer, std::int32_t where) {
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

std::string largest_tensors(const Program& program, std::int32_t where) {
  std::vector<const Buffer*> live;
  for (const Buffer& b : program.buffers)
    if (live_at(b, where)) live.push_back(&b);
  std::stable_sort(live.begin(), live.end(),
                   [](const Buffer* x, const Buffer* y) { return x->bytes > y->bytes; });
  std::string text;
  for (std::size_t i = 0; i < live.size() && i < 6; ++i)
    text += "\n    " + live[i]->name + "  " + to_string(live[i]->bytes) + "  " +
            std::string(name(live[i]->category)) + ", " +
            life_of(program, static_cast<std::size_t>(live[i] - program.buffers.data()), where);
  return text;
}

std::string by_category(const Program& program, std::int32_t where) {
  std::array<Bytes, kCategories> sums{};
  for (const Buffer& b : program.buffers)
    if (live_at(b, where)) sums[static_cast<std::size_t>(b.category)] += b.bytes;
  std::string text;
  for (std::size_t c = 0; c < kCategories; ++c)
    if (sums[c].value > 0)
      text +=
          (text.empty() ? "" : ", ") + std::string(name(static_cast<Category>(c))) + " " + to_string(sums[c]);
  return text;
}

}  // namespace

void check_fits(const Plan& plan, Bytes budget) {
  const auto peak_of = [](const Program& p) { return p.peak[static_cast<std::size_t>(Tier::kHbm)]; };
  if (plan.peak() <= budget) return;
  // The hungriest, whose need is enough for all.
  const Program* hungriest = &plan.roles.front().programs.front();
  for (const Role& role : plan.roles)
    for (const Program& p : role.programs)
      if (peak_of(p) > peak_of(*hungriest)) hungriest = &p;
  const Program& program = *hungriest;
  const Bytes peak = peak_of(program);
  const std::int32_t where = fullest(program);
  const Instr& instr = program.instrs[static_cast<std::size_t>(where)];
  throw Error(Code::kDoesNotFit,
              "program " + program.name + " needs " + std::to_string(peak.value) + " bytes (" +
                  to_string(peak) + ") of HBM on each device, the budget is " + std::to_string(budget.value) +
                  " (" + to_string(budget) + ")\n  at the peak, instruction " + std::to_string(where) + " (" +
                  program.origins[static_cast<std::size_t>(instr.origin)] +
                  "): " + by_category(program, where) +
                  "\n  the largest tensors live there:" + largest_tensors(program, where))
      .at("supernode.hbm")
      .legal(std::to_string(peak.value) + " bytes or more");
}

void check_fits(const Plan& plan, const SupernodeSpec& spec) {
  check_fits(plan, spec.hbm);
  for (const auto& [tier, budget] : {std::pair{Tier::kPool, spec.pool}, {Tier::kFlash, spec.flash}}) {
    const Bytes needed = plan.of_all_devices(tier);
    if (needed <= budget) continue;
    const std::string what(name(tier));
    throw Error(Code::kDoesNotFit, "what lies beyond HBM takes " + std::to_string(needed.value) + " bytes (" +
                                       to_string(needed) + ") of the " + what +
                                       ", all devices together; the budget is " +
                                       std::to_string(budget.value) + " (" + to_string(budget) + ")")
        .at("supernode." + what)
        .legal(std::to_string(needed.value) + " bytes or more")
        .fix("raise supernode." + what + " to \"" + std::to_string(needed.value) +
             " B\", or let less move: raise supernode.hbm, or name fewer memory.tensors");
  }
}

}  // namespace hyperrun
