#include "runtime/run/fleet.h"

#include <algorithm>

namespace hyperrun {

std::int32_t Fleet::left(std::int64_t step) const {
  if (on_gone_hosts_ > 0 && survivors_->more()) on_gone_hosts_ = 0;
  const std::int32_t all = spec_.devices + spec_.spares;
  const std::int32_t there = all - chaos_.gone(step) - timeline_.gone() - on_gone_hosts_;
  return std::clamp(there, 0, spec_.devices);
}

void Fleet::await(bool elastic) const { timeline_.await(elastic ? 1 : spec_.devices); }

void Fleet::look(const std::vector<std::string>& host_of_device) {
  if (survivors_ != nullptr) on_gone_hosts_ += survivors_->look(host_of_device);
}

}  // namespace hyperrun
