// Advice on the second tier: HBM is too small, and the pool or flash is too small to help.
#pragma once

#include <optional>
#include <string>

#include "runtime/advise/fit_search.h"

namespace hyperrun {

struct TierAdvice {
  Job job;            // the changed job, which fits: a larger tier, if needed more HBM, and offloading
  Tier tier{};        // the second tier
  Bytes hbm, beyond;  // sufficient budgets: HBM of a device, and the tier for all devices
  Plan plan;
};

// For a job short of HBM: the budget of its second tier that would help. nullopt if that tier is large
// enough, would not help, or finding out exceeds its share of `most` (tier_advice_is_too_long()). A job
// without offloading is tried with offloading to its nearest tier.
std::optional<TierAdvice> advise_tier(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose,
                                      Effort most);

// True if an offloading job gets no advice for lack of effort.
bool tier_advice_is_too_long(const Job& job, const Plan& plan, Effort most);

// Text for the cause of the error: the tier is too small as well, and what fills it.
std::string tier_cause(const TierAdvice& advice, Bytes budget);

// Text of the change to the job, without its cost.
std::string tier_change(const TierAdvice& advice, const Job& job);

}  // namespace hyperrun
