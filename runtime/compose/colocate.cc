#include "runtime/compose/colocate.h"

#include <algorithm>

#include "runtime/compile/place.h"

namespace hyperrun {
namespace {

Bytes aligned(Bytes b, Tier tier) {
  const std::int64_t to = alignment_of(tier).value;
  return Bytes((b.value + to - 1) / to * to);
}

bool is_cache(const Buffer& b) { return b.state && b.category == Category::kCache; }

// The end of the role's state in each tier, with or without the caches of a generation.
TierBytes end_of_state(const Role& role, bool caches) {
  TierBytes end{};
  for (const Program& p : role.programs)
    for (const Buffer& b : p.buffers)
      if (b.state && (caches || !is_cache(b))) {
        Bytes& of_tier = end[index_of(b.tier)];
        of_tier = std::max(of_tier, aligned(b.offset + b.bytes, b.tier));
      }
  return end;
}

// Shifts state by `by`, and temporary buffers so that they begin at `above`.
void shift(Role& role, const TierBytes& by, const TierBytes& above) {
  const TierBytes without = end_of_state(role, false), with = end_of_state(role, true);
  for (StateTensor& t : role.state) t.offset += by[index_of(t.tier)];
  for (Program& p : role.programs) {
    // A Program without caches has its temporary buffers at the offsets of the caches (place.h).
    const TierBytes& below = std::ranges::any_of(p.buffers, is_cache) ? with : without;
    p.peak = {};
    for (Buffer& b : p.buffers) {
      const std::size_t tier = index_of(b.tier);
      b.offset += b.state ? by[tier] : above[tier] - below[tier];
      p.peak[tier] = std::max(p.peak[tier], b.offset + b.bytes);
    }
  }
}

void raise(TierBytes& end, const TierBytes& to) {
  for (std::size_t tier = 0; tier < kTiers; ++tier) end[tier] = std::max(end[tier], to[tier]);
}

TierBytes sum(TierBytes a, const TierBytes& b) {
  for (std::size_t tier = 0; tier < kTiers; ++tier) a[tier] += b[tier];
  return a;
}

}  // namespace

std::vector<TierBytes> colocate(const std::vector<PlanOnRanks>& plans, int ranks) {
  std::vector<TierBytes> ends(static_cast<std::size_t>(ranks));
  const auto end_of = [&](int rank) -> TierBytes& { return ends[static_cast<std::size_t>(rank)]; };
  std::vector<TierBytes> shifts;
  for (const auto& [plan, of_plan] : plans) {
    TierBytes by{};  // one shift for all devices: a plan's state has the same offsets on each
    for (const int rank : of_plan) raise(by, end_of(rank));
    for (std::size_t d = 0; d < of_plan.size(); ++d)
      end_of(of_plan[d]) = sum(by, end_of_state(plan->of_device(static_cast<std::int64_t>(d)), true));
    shifts.push_back(by);
  }
  for (std::size_t p = 0; p < plans.size(); ++p) {
    Plan& plan = *plans[p].plan;
    std::vector<TierBytes> above(plan.roles.size());
    for (std::size_t d = 0; d < plans[p].ranks.size(); ++d)
      raise(above[plan.role_of(static_cast<std::int64_t>(d))], end_of(plans[p].ranks[d]));
    for (std::size_t r = 0; r < plan.roles.size(); ++r) shift(plan.roles[r], shifts[p], above[r]);
  }
  return ends;
}

}  // namespace hyperrun
