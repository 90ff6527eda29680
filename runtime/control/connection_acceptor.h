// The connection acceptor of the controller. It admits connections that prove to belong to the run, and sends
// the others away with the reason. Unauthenticated connections get little memory; if there are too many, the
// oldest gives way. A process that has joined already may join again: its old connection failed before it
// was told that it is admitted.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>  // before Asio: Boost 1.74 under C++20 needs it

#include "runtime/base/error.h"
#include "runtime/control/connection.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

class ConnectionAcceptor {
 public:
  struct Rules {
    std::int32_t devices = 1, ranks = 1;
    std::string secret, version;
    double heartbeat_seconds = 2;
    std::size_t max_frame = 0;  // bytes of one message of an admitted device
    // Limit of a conversation before its device is admitted. A device under load is slow.
    double pending_seconds = 120;
  };
  struct Handlers {
    // Called when a device is admitted, and again when its process joins again; the callee sets the
    // connection's handlers.
    std::function<void(tasks::DeviceInfo, std::shared_ptr<Connection>)> joined;
    // Called when a device of this run cannot take part in it; the run cannot go on without it.
    std::function<void(const Error&)> incompatible;
  };

  // Listens: on 127.0.0.1 if `loopback`, else on all interfaces, by IPv4 and IPv6 if the host has both.
  // Throws kControl if it cannot.
  ConnectionAcceptor(asio::io_context& io, Rules rules, bool loopback);
  int port() const;
  void open(Handlers handlers);
  // Ends listening and all connections that are not admitted.
  void close();

 private:
  struct PendingConnection;
  // The process that was admitted as a rank, and the number of the connection by which it came.
  struct Admitted {
    std::string machine;
    int pid = 0;
    std::uint64_t connection = 0;
  };

  void listen(const asio::ip::tcp::endpoint& at);
  void accept();
  void accept_later();
  void drop(const std::shared_ptr<PendingConnection>& pending);
  void greet(asio::ip::tcp::socket socket);
  void on_message(const std::shared_ptr<PendingConnection>& pending, pb::Message&& message);
  bool authentic(const PendingConnection& pending, const pb::Hello& hello) const;
  bool taken(const PendingConnection& pending, const pb::Identity& identity) const;
  std::optional<Error> objection(const pb::Identity& identity) const;
  void reject(const std::shared_ptr<PendingConnection>& pending, const Error& why);
  void welcome(const std::shared_ptr<PendingConnection>& pending, const pb::Hello& hello,
               const pb::Identity& identity);

  asio::io_context& io_;
  Rules rules_;
  Handlers handlers_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::map<std::uint64_t, std::shared_ptr<PendingConnection>> pending_;  // by number, so the oldest first
  std::uint64_t accepted_ = 0;                                           // number of connections so far
  std::map<std::int32_t, Admitted> admitted_;                            // by rank
};

}  // namespace hyperrun::control
