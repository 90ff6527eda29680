#include "runtime/advise/fit.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "runtime/advise/fit_search.h"
#include "runtime/advise/offload_text.h"
#include "runtime/advise/paste.h"
#include "runtime/advise/tier_advice.h"
#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/compile/compile.h"
#include "runtime/spec/job_check.h"

namespace hyperrun {
namespace {

// Each offer begins a line; the lines to paste are on the next one.
constexpr const char* kOr = "\n    or ";
constexpr const char* kMoreDevices = "\n    or use more devices";
constexpr const char* kPasted = "\n         ";

const char* nothing_helps(bool generates) {
  return generates ? "use more devices, or a smaller model: nothing beyond HBM, fewer slots or a shorter "
                     "context would help"
                   : "use more devices, or a smaller model, batch or sequence: no preset of this mesh, more "
                     "micro-batches or recomputation would help";
}

class RemedyText {
 public:
  RemedyText(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, Shortfall shortfall,
             SearchLimits most)
      : loaded_(loaded),
        purpose_(purpose),
        shortfall_(shortfall),
        needs_(shortfall.needs(plan)),
        limit_(most.time),
        search_(loaded, plan, purpose, shortfall, most) {
    if (shortfall.tier != Tier::kHbm) return;
    bool in_time = !tier_advice_is_too_long(loaded.job, plan, most.effort);
    try {
      const TimeLimit limit(search_.end());
      tier_advice_ = advise_tier(loaded, plan, purpose, most.effort);
    } catch (const OutOfTime&) {
      in_time = false;
    }
    if (!in_time) untried_ = "more HBM and more of what lies beyond it";
  }

  const std::optional<TierAdvice>& advice() const { return tier_advice_; }

  std::string text() {
    const bool moves = loaded_.job.memory.policy != "none";
    std::string raise;
    if (moves)
      raise = raises();  // compiled first
    else
      search_.start_baseline();
    search_.run();
    if (!moves) raise = raises();
    std::string offers;
    for (const Attempt& t : search_.best()) offers += offer(t) + kOr;
    if (offers.empty() && search_.anything_helps()) return of_several(raise) + untried();
    if (offers.empty() && search_.untried().empty()) return raise + kOr + nothing_helps(purpose_.generates);
    return offers + raise + (offers.empty() ? kMoreDevices : "") + untried();
  }

 private:
  std::string of_several(const std::string& raise) {
    const Attempt together = search_.combine_all();
    if (together.fits) return offer(together) + kOr + raise;
    const char* with_that = tier_advice_ ? "with what there is beyond HBM " : "";
    const bool fits_alone = together.needs <= shortfall_.budget;  // the other tier is too small
    return raise + kMoreDevices +
           (together.what.empty() || fits_alone
                ? ""
                : "\n  the least that was tried " + (with_that + needs(together.needs)) + ": " +
                      together.what);
  }

  // Text on a line of its own.
  std::string untried() const {
    std::string text = untried_;
    for (const std::string& what : search_.untried()) text += (text.empty() ? "" : "; ") + what;
    if (const int n = search_.untried_combinations(); n > 0)
      text += fmt::format("{}{} more combinations", text.empty() ? "" : "; ", n);
    if (!text.empty()) text = "\n  not tried for want of time: " + text;
    if (search_.is_cut_off())
      text += fmt::format("\n  the search for what would fit was cut off after {} s",
                          std::chrono::duration<double>(limit_).count());
    return text;
  }

  // Raised budgets: of the tier that is too small, of a helpful second tier, or of HBM if the second tier is
  // too small.
  std::string raises() {
    std::string text = raised(shortfall_.tier, needs_);
    if (tier_advice_) text += kOr + tier_advice_text();
    if (shortfall_.tier == Tier::kHbm) return text;
    Job none = loaded_.job;
    none.supernode.hbm = Bytes(1);  // the compiler plans for the least HBM with this pool
    try {
      return text + kOr + raised(Tier::kHbm, search_.compiled(none).peak());
    } catch (const OutOfTime&) {
      return text;
    }
  }

  // A raised budget, to the byte, which fits. Costs of other changes are relative to the first of these.
  // Without offloading the plan does not depend on HBM, so it is not compiled again.
  std::string raised(Tier tier, Bytes to) {
    Job job = loaded_.job;
    (tier == Tier::kHbm    ? job.supernode.hbm
     : tier == Tier::kPool ? job.supernode.pool
                           : job.supernode.flash) = to;
    const std::optional<Nanos> time = time_with_room(job);
    if (tier == shortfall_.tier) with_room_ = time;
    return fmt::format("raise supernode.{} to \"{} B\"{}{}{}", name(tier), to.value, of_profile(job),
                       time ? ": " + to_string(*time) + purpose_.unit() : "", to_paste(job));
  }

  std::string tier_advice_text() const {
    const std::string beyond = tier_advice_->job.memory == loaded_.job.memory
                                   ? ""
                                   : ", " + describe_offload(tier_advice_->plan, purpose_.program());
    return tier_change(*tier_advice_, loaded_.job) + of_profile(tier_advice_->job) + ": " +
           to_string(purpose_.time(tier_advice_->job, tier_advice_->plan)) + purpose_.unit() + beyond +
           to_paste(tier_advice_->job);
  }

  // Text if a budget exceeds that of the profile.
  std::string of_profile(const Job& job) const {
    const SupernodeSpec& s = job.supernode;
    return s.machine && !check_job(job, loaded_.source).empty()
               ? " (more than the profile \"" + s.machine->name + "\" has)"
               : "";
  }

  // nullopt: the time of the search is over.
  std::optional<Nanos> time_with_room(const Job& job) try {
    if (job.memory.policy == "none") return search_.baseline_time();
    const Plan plan = search_.compiled(job);
    HR_CHECK(all_fits(plan, job.supernode));
    return purpose_.time(job, plan);
  } catch (const OutOfTime&) {
    return std::nullopt;
  }

  std::string needs(Bytes bytes) const {
    return fmt::format("needs {} bytes ({})", bytes.value, to_string(bytes)) +
           (shortfall_.tier == Tier::kHbm ? "" : fmt::format(" of the {}", name(shortfall_.tier)));
  }

  std::string to_paste(const Job& job) const {
    return kPasted + lines_to_paste(loaded_.source, loaded_.job, job);
  }

  std::string offer(const Attempt& t) const {
    return fmt::format("{}: {}, {}{} as simulated{}{}{}{}", t.what, needs(t.needs), to_string(t.time),
                       purpose_.unit(), difference(t), t.beyond.empty() ? "" : ", ", t.beyond,
                       to_paste(t.job));
  }

  std::string difference(const Attempt& t) const {
    if (!with_room_) return "";
    const Nanos more = t.time - *with_room_;
    return fmt::format(" ({} {} than with enough {})", to_string(Nanos(std::abs(more.value))),
                       more < Nanos(0) ? "less" : "more",
                       shortfall_.tier == Tier::kHbm ? "HBM" : name(shortfall_.tier));
  }

  const LoadedJob& loaded_;
  FitPurpose purpose_;
  Shortfall shortfall_;
  Bytes needs_;
  std::chrono::milliseconds limit_;
  FitSearch search_;
  std::optional<TierAdvice> tier_advice_;
  std::string untried_;             // what was left out besides the search
  std::optional<Nanos> with_room_;  // step with enough of the tier that is too small, if it is known
};

Shortfall shortfall_of(const Plan& plan, const SupernodeSpec& spec) {
  if (plan.peak() > spec.hbm) return {Tier::kHbm, spec.hbm};
  if (plan.of_all_devices(Tier::kPool) > spec.pool) return {Tier::kPool, spec.pool};
  return {Tier::kFlash, spec.flash};
}

// Error of an offloading job whose HBM and second tier are both too small.
Error both_tiers_error(const Error& of_hbm, const TierAdvice& advice, const SupernodeSpec& spec) {
  const Bytes budget = advice.tier == Tier::kPool ? spec.pool : spec.flash;
  return Error(of_hbm.code(), of_hbm.cause() + tier_cause(advice, budget))
      .at(of_hbm.place())
      .legal(fmt::format("{}; or {} or more beside {} or more of the {}", of_hbm.legal(), advice.hbm.value,
                         advice.beyond.value, name(advice.tier)));
}

void require_fit_of(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, SearchLimits most) try {
  check_fits(plan, loaded.job.supernode);
} catch (Error& e) {
  RemedyText remedy(loaded, plan, purpose, shortfall_of(plan, loaded.job.supernode), most);
  if (const auto& advice = remedy.advice(); advice && advice->job.memory == loaded.job.memory)
    e = both_tiers_error(e, *advice, loaded.job.supernode);
  e.fix(remedy.text());
  if (!flags().dump_dir.empty())
    purpose.compiled(loaded.job);  // restores the dump that trials have overwritten
  throw;
}

}  // namespace

void require_fit(const LoadedJob& loaded, const Plan& plan, SearchLimits most) {
  require_fit_of(loaded, plan, {}, most);
}

void require_generation_fit(const LoadedJob& loaded, const Plan& plan, SearchLimits most) {
  require_fit_of(loaded, plan, {.generates = true}, most);
}

}  // namespace hyperrun
