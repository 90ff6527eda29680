#include "runtime/control/dispatcher.h"

#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun::control {

Dispatcher::Dispatcher(std::int32_t devices, std::int32_t window)
    : devices_(devices), window_(window), next_report_(static_cast<std::size_t>(devices), 0) {
  HR_CHECK(devices > 0 && window > 0);
}

void Dispatcher::issue(Invocation invocation) {
  HR_CHECK(has_room());
  std::vector<InvocationDone> results(static_cast<std::size_t>(devices_));
  flights_.push_back({{std::move(invocation), std::move(results)}, devices_});
}

void Dispatcher::collect(std::int32_t rank, InvocationDone done) {
  const auto r = static_cast<std::size_t>(rank);
  const auto position = static_cast<std::size_t>(next_report_.at(r) - taken_);
  if (position >= flights_.size() || flights_[position].completed.invocation.id != done.id)
    throw Error(Code::kControl, "device " + std::to_string(rank) + " reports invocation " +
                                    std::to_string(done.id) + ", which is not its next one");
  Flight& flight = flights_[position];
  flight.completed.results[r] = std::move(done);
  --flight.missing;
  ++next_report_[r];
}

std::optional<Dispatcher::Completed> Dispatcher::take_completed() {
  if (flights_.empty() || flights_.front().missing > 0) return std::nullopt;
  Completed completed = std::move(flights_.front().completed);
  flights_.pop_front();
  ++taken_;
  return completed;
}

}  // namespace hyperrun::control
