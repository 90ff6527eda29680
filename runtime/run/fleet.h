// The devices that a run has left: those of its job and its spares, without those that are gone for good.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/run/chaos.h"
#include "runtime/run/run_timeline.h"
#include "runtime/run/survivors.h"

namespace hyperrun {

class Fleet {
 public:
  // `survivors` may be null: no host is looked for. All must outlive the fleet.
  Fleet(const SupernodeSpec& spec, const Chaos& chaos, RunTimeline& timeline, Survivors* survivors)
      : spec_(spec), chaos_(chaos), timeline_(timeline), survivors_(survivors) {}

  // The number of devices for the next start, after `step` steps: at most those of the job. Asks, without
  // waiting, whether hosts are back.
  std::int32_t left(std::int64_t step) const;

  // Waits until as many devices are there as a run needs that keeps its layout, or that is elastic, if it is
  // known when they are repaired.
  void await(bool elastic) const;

  // Seconds that await() will take on the native clock.
  double wait(bool elastic) const;

  // Looks after a loss which hosts are there; may take seconds. `host_of_device` is of the run that was lost.
  void look(const std::vector<std::string>& host_of_device);

  // The last start failed before a device was there: hosts that had come back for it are not taken again.
  void distrust_returned();

 private:
  // A run that keeps its layout needs all devices, an elastic one a single one.
  std::int32_t needed(bool elastic) const { return elastic ? 1 : spec_.devices; }

  const SupernodeSpec& spec_;
  const Chaos& chaos_;
  RunTimeline& timeline_;
  Survivors* survivors_;
};

}  // namespace hyperrun
