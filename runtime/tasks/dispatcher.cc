#include "runtime/tasks/dispatcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun::tasks {

Dispatcher::Dispatcher(const DeviceGroups& groups, std::int32_t window)
    : groups_(groups), window_(static_cast<std::size_t>(window)) {
  HR_CHECK(window > 0);
  devices_.resize(static_cast<std::size_t>(groups.devices()));
  entries_.resize(devices_.size() * window_);
}

bool Dispatcher::has_room(GroupId group) const {
  return std::ranges::all_of(groups_.ranks(group), [this](std::int32_t rank) {
    return devices_[static_cast<std::size_t>(rank)].count < window_;
  });
}

void Dispatcher::issue(Invocation invocation) {
  HR_CHECK(has_room(invocation.group), "an invocation for devices whose windows are full");
  const std::span<const std::int32_t> ranks = groups_.ranks(invocation.group);
  const std::uint32_t f = free_flight();
  Flight& flight = flights_[f];
  flight.completed.invocation = std::move(invocation);
  flight.completed.results.resize(ranks.size());
  flight.missing = static_cast<std::int32_t>(ranks.size());
  for (std::uint32_t place = 0; place < ranks.size(); ++place) {
    const auto r = static_cast<std::size_t>(ranks[place]);
    Device& device = devices_[r];
    entries_[r * window_ + (device.first + device.count++) % window_] = {f, place};
  }
  ++in_flight_;
}

std::uint32_t Dispatcher::free_flight() {
  if (free_.empty()) {
    flights_.emplace_back();
    return static_cast<std::uint32_t>(flights_.size() - 1);
  }
  const std::uint32_t f = free_.back();
  free_.pop_back();
  return f;
}

void Dispatcher::collect(std::int32_t rank, InvocationDone done) {
  const auto r = static_cast<std::size_t>(rank);
  const Invocation* const next = awaited(rank);
  if (next == nullptr || next->id != done.id)
    throw Error(Code::kControl,
                fmt::format("device {} reports invocation {}, which is not its next one", rank, done.id));
  const Entry entry = front(r);
  Device& device = devices_[r];
  device.first = static_cast<std::uint32_t>((device.first + 1) % window_);
  --device.count;
  Flight& flight = flights_[entry.flight];
  flight.completed.results[entry.place] = std::move(done);
  if (--flight.missing == 0) completed_.push_back(entry.flight);
}

const Dispatcher::Completed* Dispatcher::take_completed() {
  if (taken_ >= 0) free_.push_back(static_cast<std::uint32_t>(std::exchange(taken_, -1)));
  if (completed_.empty()) return nullptr;
  taken_ = completed_.front();
  completed_.pop_front();
  --in_flight_;
  return &flights_[static_cast<std::size_t>(taken_)].completed;
}

const Invocation* Dispatcher::awaited(std::int32_t rank) const {
  const auto r = static_cast<std::size_t>(rank);
  return devices_.at(r).count == 0 ? nullptr : &flights_[front(r).flight].completed.invocation;
}

}  // namespace hyperrun::tasks
