#include "runtime/advise/fit_relief.h"

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

// It takes up to three compilations; what changes of other kinds do is worth as much and more.
constexpr Effort kCompilations = 3, kShare = 4;

bool moves(const Job& job) { return job.memory.policy != "none"; }

Bytes& budget_of(Job& job, Tier tier) {
  return tier == Tier::kFlash ? job.supernode.flash : job.supernode.pool;
}

// Moving all that may, where it moves nothing, to the nearest tier that it has.
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

std::string bytes(Bytes b) { return std::to_string(b.value) + " bytes (" + to_string(b) + ")"; }

std::string raised(Tier tier, Bytes to) {
  return "supernode." + std::string(name(tier)) + " to \"" + std::to_string(to.value) + " B\"";
}

}  // namespace

std::optional<Relief> relief_of(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose,
                                Effort most) try {
  const std::optional<Job> as_it_is = moving(loaded.job);
  if (!as_it_is || !check_job(*as_it_is, loaded.source).empty() ||
      is_too_long(*as_it_is, plan, loaded.job, most))
    return std::nullopt;
  const Tier tier = as_it_is->memory.tier == "flash" ? Tier::kFlash : Tier::kPool;
  Relief relief{.job = *as_it_is, .tier = tier, .hbm = {}, .beyond = {}, .plan = {}};
  Bytes& beyond = budget_of(relief.job, tier);
  const Bytes has = std::exchange(beyond, kEndless);
  relief.hbm = std::max(loaded.job.supernode.hbm, purpose.compiled(relief.job).peak());
  if (relief.hbm >= plan.peak()) return std::nullopt;
  relief.job.supernode.hbm = relief.hbm;
  beyond = Bytes(1);  // is planned for the least that is enough with that HBM
  relief.beyond = purpose.compiled(relief.job).of_all_devices(tier);
  if (relief.beyond <= has) return std::nullopt;
  beyond = relief.beyond;
  relief.plan = purpose.compiled(relief.job);
  HR_CHECK(all_fits(relief.plan, relief.job.supernode));
  return relief;
} catch (const Error& e) {
  if (e.code() == Code::kInternal) throw;
  return std::nullopt;  // its layouts cannot move
}

bool relief_is_too_long(const Job& job, const Plan& plan, Effort most) {
  return moves(job) && is_too_long(job, plan, job, most);
}

std::string cause_of(const Relief& relief, Bytes budget) {
  const std::string tier(name(relief.tier));
  return "\n  of the " + tier + " there is too little as well: the budget is " +
         std::to_string(budget.value) + " (" + to_string(budget) + "), and with " + bytes(relief.beyond) +
         " of it, all devices together, " + bytes(relief.hbm) + " of HBM would do" +
         what_fills(relief.plan, relief.tier);
}

std::string change_of(const Relief& relief, const Job& job) {
  std::string what;
  if (relief.job.memory != job.memory) {
    what = "set memory to { policy: \"" + relief.job.memory.policy + "\"";
    if (relief.job.memory.tier != MemorySpec{}.tier) what += " tier: \"" + relief.job.memory.tier + "\"";
    what += " } and ";
  }
  what += "raise ";
  if (relief.hbm > job.supernode.hbm) what += raised(Tier::kHbm, relief.hbm) + " and ";
  return what + raised(relief.tier, relief.beyond);
}

}  // namespace hyperrun
