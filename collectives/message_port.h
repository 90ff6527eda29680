// A port for messages between ranks, which never blocks. Collectives ask nothing else of a network.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hyperrun {

// Messages of one sender, receiver and tag arrive in the order of sending. One thread uses the port.
class MessagePort {
 public:
  using Ticket = int;  // an operation under way; free again once test() has returned true

  virtual ~MessagePort() = default;
  virtual Ticket send(const std::byte* data, std::int64_t bytes, int to, int tag) = 0;
  virtual Ticket receive(std::byte* data, std::int64_t bytes, int from, int tag) = 0;
  virtual bool test(Ticket ticket) = 0;
};

}  // namespace hyperrun
