#include "runtime/forecast/traffic_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/report/table.h"

namespace hyperrun {
namespace {

struct AxisTraffic {
  std::int64_t times = 0;
  Bytes of_busiest{}, of_all{};
};

// Whether the traffic is a prefetch or a store, which moves bytes between tiers and along no axis.
bool is_transfer(const TrafficKind& kind) {
  return kind.collective == "prefetch" || kind.collective == "store";
}

}  // namespace

std::string traffic_table(const SimResult& step) {
  std::map<std::pair<std::string, std::string>, AxisTraffic> sums;  // by axes and collective
  for (std::size_t d = 0; d < step.role_of.size(); ++d) {
    const SimRole& role = step.roles[step.role_of[d]];
    for (std::size_t k = 0; k < role.kinds.size(); ++k) {
      if (is_transfer(role.kinds[k])) continue;
      AxisTraffic& sum = sums[{role.kinds[k].axes, role.kinds[k].collective}];
      sum.times = std::max(sum.times, role.counts[k]);
      sum.of_busiest = std::max(sum.of_busiest, step.traffic[d][k]);
      sum.of_all += step.traffic[d][k];
    }
  }
  Table table({left("axis"), left("collective"), right("times a device"), right("a device, at most"),
               right("all devices")});
  for (const auto& [key, sum] : sums)
    if (sum.of_all.value > 0)  // sends have no bytes of their own: the receiver counts them
      table.row({key.first, key.second, with_separators(sum.times), to_string(sum.of_busiest),
                 to_string(sum.of_all)});
  return table.empty() ? "" : table.str("  ");
}

}  // namespace hyperrun
