#include "runtime/tasks/driver.h"

namespace hyperrun::tasks {

std::optional<Invocation> Driver::next_within(const Dispatcher& dispatcher) {
  return dispatcher.has_room(kEveryDevice) ? next_invocation() : std::nullopt;
}

}  // namespace hyperrun::tasks
