#include "runtime/run/best_layout.h"

#include <fmt/core.h>

#include "runtime/base/error.h"
#include "runtime/plan/search.h"

namespace hyperrun {
namespace {

// A run waits for the answer, so fewer strategies are simulated than `hyperrun plan` does.
constexpr std::int32_t kSimulated = 4;

}  // namespace

Job best_layout(const Job& job, std::int32_t devices) {
  for (Job world = job; devices > 0; --devices) {
    world.supernode.devices = devices;
    SearchOptions options{.leaders = kSimulated, .progress = {}};
    options.of_each_kind = false;
    const Search found = search(world, options);
    if (found.found()) return job_of(world, found.leaders.front().strategy);
  }
  throw Error(Code::kBadLayout, "no layout of the devices that are left can run the job");
}

}  // namespace hyperrun
