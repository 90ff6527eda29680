#include "runtime/ir/machine.h"

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/ir/job.h"

namespace hyperrun {

std::string_view name(Evidence e) {
  static constexpr std::array<std::string_view, 4> kNames{"measured", "data sheet", "placeholder",
                                                          "given by the job"};
  return kNames[static_cast<std::size_t>(e)];
}

int Machine::level_between(std::int64_t a, std::int64_t b) const {
  if (a == b) return -1;
  const auto outermost = static_cast<int>(levels.size()) - 1;
  for (int l = 0; l < outermost; ++l)
    if (const std::int64_t unit = levels[static_cast<std::size_t>(l)].devices; a / unit == b / unit) return l;
  return outermost;
}

std::int64_t Machine::devices_of_a_host() const {
  for (auto level = levels.rbegin(); level != levels.rend(); ++level)
    if (level->addressable)
      return level == levels.rbegin() ? std::numeric_limits<std::int64_t>::max() : level->devices;
  return 1;
}

Machine machine_of(const SupernodeSpec& spec) {
  if (spec.machine) return *spec.machine;
  Machine m;
  m.name = "flat profile of the job";
  m.cube = {{spec.cube_flops}, {spec.cube_flops}};
  m.vector = {spec.vector_flops};
  m.hbm = {static_cast<double>(spec.hbm.value)};
  m.hbm_bandwidth = {spec.hbm_bandwidth};
  const Figure launch{static_cast<double>(spec.launch_latency.value)};
  m.launch_cube = m.launch_vector = m.launch_comm = launch;
  m.pool = {.bandwidth = {spec.pool_bandwidth}, .latency = {static_cast<double>(spec.pool_latency.value)}};
  m.flash = {.bandwidth = {spec.flash_bandwidth}, .latency = {static_cast<double>(spec.flash_latency.value)}};
  m.levels = {{.name = "bus",
               .devices = spec.devices,
               .addressable = true,
               .latency = {static_cast<double>(spec.link_latency.value)},
               .bandwidth = {spec.link_bandwidth},
               .shared = {},
               .efficiency = {}}};
  return m;
}

}  // namespace hyperrun
