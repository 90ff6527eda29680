#include "collectives/loopback_port.h"

#include <cstring>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {

void LoopbackWire::post(const Key& key, bool sending, std::shared_ptr<Operation> operation) {
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_[key];
  (sending ? queue.sends : queue.receives).push_back(std::move(operation));
  while (!queue.sends.empty() && !queue.receives.empty()) {
    Operation& from = *queue.sends.front();
    Operation& to = *queue.receives.front();
    HR_CHECK(from.bytes == to.bytes, "the two sides of a message disagree about its size");
    if (from.bytes > 0) std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes));
    from.done = to.done = true;
    queue.sends.pop_front();
    queue.receives.pop_front();
  }
}

bool LoopbackWire::done(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  return operation.done;
}

MessagePort::Ticket LoopbackPort::send(const std::byte* data, std::int64_t bytes, int to, int tag) {
  return post({rank_, to, tag}, true, const_cast<std::byte*>(data), bytes);
}

MessagePort::Ticket LoopbackPort::receive(std::byte* data, std::int64_t bytes, int from, int tag) {
  return post({from, rank_, tag}, false, data, bytes);
}

MessagePort::Ticket LoopbackPort::post(const LoopbackWire::Key& key, bool sending, std::byte* data,
                                       std::int64_t bytes) {
  auto operation = std::make_shared<LoopbackWire::Operation>(LoopbackWire::Operation{data, bytes});
  Ticket ticket = static_cast<Ticket>(operations_.size());
  if (free_.empty()) {
    operations_.push_back(operation);
  } else {
    ticket = free_.back();
    free_.pop_back();
    operations_[static_cast<std::size_t>(ticket)] = operation;
  }
  wire_->post(key, sending, std::move(operation));
  return ticket;
}

bool LoopbackPort::test(Ticket ticket) {
  if (!wire_->done(*operations_[static_cast<std::size_t>(ticket)])) return false;
  free_.push_back(ticket);
  return true;
}

}  // namespace hyperrun
