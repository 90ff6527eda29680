#include "runtime/run/fleet.h"

#include <algorithm>

namespace hyperrun {

std::int32_t Fleet::left(std::int64_t step) const {
  std::int32_t all = spec_.devices + spec_.spares;
  if (survivors_ != nullptr) {
    survivors_->look_beside();
    all = std::min(all, survivors_->devices());
  }
  return std::clamp(all - chaos_.gone(step) - timeline_.gone(), 0, spec_.devices);
}

void Fleet::await(bool elastic) const { timeline_.await(needed(elastic)); }

double Fleet::wait(bool elastic) const { return timeline_.wait(needed(elastic)); }

void Fleet::look(const std::vector<std::string>& host_of_device) {
  if (survivors_ != nullptr) survivors_->look(host_of_device);
}

void Fleet::distrust_returned() {
  if (survivors_ != nullptr) survivors_->distrust_returned();
}

}  // namespace hyperrun
