// A message port between threads of one process. It lets every message algorithm run, at any number of ranks,
// without MPI.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "collectives/message_port.h"

namespace hyperrun {

// The wire that all ports of a set share.
class LoopbackWire {
 public:
  struct Operation {
    std::byte* data;
    std::int64_t bytes;
    bool done = false;
  };
  using Key = std::tuple<int, int, int>;  // from, to, tag

  void post(const Key& key, bool sending, std::shared_ptr<Operation> operation);
  bool done(const Operation& operation);

 private:
  struct Queue {
    std::deque<std::shared_ptr<Operation>> sends, receives;
  };

  std::mutex mutex_;
  std::map<Key, Queue> queues_;
};

class LoopbackPort : public MessagePort {
 public:
  LoopbackPort(std::shared_ptr<LoopbackWire> wire, int rank) : wire_(std::move(wire)), rank_(rank) {}

  Ticket send(const std::byte* data, std::int64_t bytes, int to, int tag) override;
  Ticket receive(std::byte* data, std::int64_t bytes, int from, int tag) override;
  bool test(Ticket ticket) override;

 private:
  Ticket post(const LoopbackWire::Key& key, bool sending, std::byte* data, std::int64_t bytes);

  std::shared_ptr<LoopbackWire> wire_;
  int rank_;
  std::vector<std::shared_ptr<LoopbackWire::Operation>> operations_;
  std::vector<Ticket> free_;
};

}  // namespace hyperrun
