#include "runtime/tasks/virtual_devices.h"

#include <string>
#include <utility>

#include "runtime/tasks/dispatcher.h"

namespace hyperrun::tasks {

VirtualDevices::VirtualDevices(std::int32_t devices)
    : queues_(static_cast<std::size_t>(devices)), busy_(queues_.size()) {}

void VirtualDevices::give(std::int64_t id, std::span<const std::int32_t> ranks, Nanos lasts) {
  given_[id] = {{ranks.begin(), ranks.end()}, lasts, {}, ranks.size()};
  for (const std::int32_t r : ranks) {
    std::deque<std::int64_t>& queue = queues_[static_cast<std::size_t>(r)];
    queue.push_back(id);
    if (queue.size() == 1) comes_to(id);
  }
}

void VirtualDevices::comes_to(std::int64_t id) {
  Given& given = given_.at(id);
  if (--given.missing > 0) return;
  given.begin = now_;
  ends_.push({now_ + given.lasts, id});
  for (const std::int32_t r : given.ranks) busy_[static_cast<std::size_t>(r)] += given.lasts;
}

VirtualDevices::Done VirtualDevices::advance() {
  const End end = ends_.top();
  ends_.pop();
  now_ = end.time;
  Given done = std::move(given_.extract(end.id).mapped());
  for (const std::int32_t r : done.ranks) {
    std::deque<std::int64_t>& queue = queues_[static_cast<std::size_t>(r)];
    queue.pop_front();
    if (!queue.empty()) comes_to(queue.front());
  }
  return {end.id, std::move(done.ranks), done.begin, now_};
}

void drive(Driver& driver, VirtualDevices& devices, VirtualWork& work, std::int32_t window) {
  std::vector<DeviceInfo> infos(devices.busy().size());
  for (std::size_t d = 0; d < infos.size(); ++d) {
    infos[d].rank = static_cast<std::int32_t>(d);
    infos[d].host = "virtual";
  }
  driver.on_ready(infos);
  DeviceGroups groups(static_cast<std::int32_t>(infos.size()));
  for (const std::vector<std::int32_t>& ranks : driver.device_groups()) groups.add(ranks);
  Dispatcher dispatcher(groups, window);
  std::map<std::int64_t, Invocation> issued;
  for (;;) {
    while (std::optional<Invocation> next = driver.next_within(dispatcher)) {
      devices.give(next->id, groups.ranks(next->group), work.lasts(*next));
      dispatcher.issue(*next);
      issued.emplace(next->id, *std::move(next));
    }
    if (devices.idle()) return;
    const VirtualDevices::Done done = devices.advance();
    std::vector<InvocationDone> results = work.done(issued.extract(done.id).mapped(), done.begin, done.end);
    for (std::size_t d = 0; d < done.ranks.size(); ++d)
      dispatcher.collect(done.ranks[d], std::move(results[d]));
    while (const Dispatcher::Completed* const completed = dispatcher.take_completed())
      driver.on_done(completed->invocation, completed->results);
  }
}

}  // namespace hyperrun::tasks
