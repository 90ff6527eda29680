// Runs and faults for the tests of runtime/faults.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/faults/costs.h"
#include "runtime/faults/fault_model.h"
#include "runtime/faults/walk.h"

namespace hyperrun::testing {

// 1,024 devices in 16 replicas; a step takes 10 s. Devices fail each 100,000 hours and hosts of 8 each
// 50,000: a fault of the run each 62 hours. Writing takes 60 s, coming back 130 s, a repair 10 hours.
FaultedRun some_run();
FaultModel some_faults();

// Faults after which a restart suffices, a mean time `mtbf` apart; saving takes `save` and coming back
// `restart`.
FaultModel plain_faults(double mtbf, double save, double restart);

// The goodput of a policy with a save each so many steps, over `samples` histories.
double goodput(const FaultModel& spec, const FaultedRun& run, std::string_view policy,
               std::int64_t save_every);

FaultOutcome outcome(const FaultModel& spec, const FaultedRun& run, std::string_view policy,
                     std::int64_t save_every, std::uint64_t seed);

}  // namespace hyperrun::testing
