#include "runtime/advise/tier_advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/fits.h"
#include "runtime/spec/job_check.h"

namespace hyperrun {
namespace {

// More than any plan takes.
constexpr Bytes kEndless{std::int64_t{1} << 60};

// Advice takes up to three compilations. Other kinds of changes are worth as much, so it gets a share of the
// effort.
constexpr Effort kCompilations = 3, kShare = 4;

bool moves(const Job& job) { return job.memory.policy != "none"; }

Bytes& budget_of(Job& job, Tier tier) {
  return tier == Tier::kFlash ? job.supernode.flash : job.supernode.pool;
}

// The job with everything offloaded to the nearest tier that it has, unless it offloads already.
std::optional<Job> moving(const Job& job) {
  if (moves(job)) return job;
  if (job.supernode.pool.value == 0 && job.supernode.flash.value == 0) return std::nullopt;
  Job other = job;
  other.memory = {"hyperoffload", job.supernode.pool.value > 0 ? "pool" : "flash", {}};
  return other;
}

bool is_too_long(const Job& moving, const Plan& plan, const Job& job, Effort most) {
  return kCompilations * effort_like(moving, plan, job) > most / kShare;
}

std::string bytes(Bytes b) { return fmt::format("{} bytes ({})", b.value, to_string(b)); }

std::string raised(Tier tier, Bytes to) {
  return fmt::format("supernode.{} to \"{} B\"", name(tier), to.value);
}

}  // namespace

std::optional<TierAdvice> advise_tier(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose,
                                      Effort most) try {
  const std::optional<Job> planned = moving(loaded.job);
  if (!planned || !check_job(*planned, loaded.source).empty() ||
      is_too_long(*planned, plan, loaded.job, most))
    return std::nullopt;
  const Tier tier = planned->memory.tier == "flash" ? Tier::kFlash : Tier::kPool;
  TierAdvice advice{.job = *planned, .tier = tier, .hbm = {}, .beyond = {}, .plan = {}};
  Bytes& beyond = budget_of(advice.job, tier);
  const Bytes has = std::exchange(beyond, kEndless);
  advice.hbm = std::max(loaded.job.supernode.hbm, purpose.compiled(advice.job).peak());
  if (advice.hbm >= plan.peak()) return std::nullopt;
  advice.job.supernode.hbm = advice.hbm;
  beyond = Bytes(1);  // the compiler plans for the least that suffices
  advice.beyond = purpose.compiled(advice.job).of_all_devices(tier);
  if (advice.beyond <= has) return std::nullopt;
  beyond = advice.beyond;
  advice.plan = purpose.compiled(advice.job);
  HR_CHECK(all_fits(advice.plan, advice.job.supernode));
  return advice;
} catch (const Error& e) {
  if (e.code() == Code::kInternal) throw;
  return std::nullopt;  // its layouts cannot be offloaded
}

bool tier_advice_is_too_long(const Job& job, const Plan& plan, Effort most) {
  return moves(job) && is_too_long(job, plan, job, most);
}

std::string tier_cause(const TierAdvice& advice, Bytes budget) {
  return fmt::format(
      "\n  of the {} there is too little as well: the budget is {} ({}), and with {} of it, all devices "
      "together, {} of HBM would do{}",
      name(advice.tier), budget.value, to_string(budget), bytes(advice.beyond), bytes(advice.hbm),
      what_fills(advice.plan, advice.tier));
}

std::string tier_change(const TierAdvice& advice, const Job& job) {
  std::string what;
  if (advice.job.memory != job.memory) {
    what = "set memory to { policy: \"" + advice.job.memory.policy + "\"";
    if (advice.job.memory.tier != MemorySpec{}.tier) what += " tier: \"" + advice.job.memory.tier + "\"";
    what += " } and ";
  }
  what += "raise ";
  if (advice.hbm > job.supernode.hbm) what += raised(Tier::kHbm, advice.hbm) + " and ";
  return what + raised(advice.tier, advice.beyond);
}

}  // namespace hyperrun
