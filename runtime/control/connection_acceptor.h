// The connection acceptor of the controller. It admits connections that prove to belong to the run, and sends
// the others away with the reason. Unauthenticated connections get little memory and little time.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
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
  };
  struct Handlers {
    // Called when a device is admitted; the callee sets the connection's handlers.
    std::function<void(tasks::DeviceInfo, std::shared_ptr<Connection>)> joined;
    // Called when a device of this run cannot take part in it; the run cannot go on without it.
    std::function<void(const Error&)> incompatible;
  };

  // Listens; throws kControl if it cannot.
  ConnectionAcceptor(asio::io_context& io, Rules rules, bool loopback);
  int port() const;
  void open(Handlers handlers);
  void close();

 private:
  struct PendingConnection;
  void accept();
  void accept_later();
  void greet(asio::ip::tcp::socket socket);
  void on_message(const std::shared_ptr<PendingConnection>& pending, pb::Message&& message);
  bool authentic(const PendingConnection& pending, const pb::Hello& hello) const;
  std::optional<Error> objection(const pb::Identity& identity) const;
  void reject(const std::shared_ptr<PendingConnection>& pending, const Error& why);
  void welcome(const std::shared_ptr<PendingConnection>& pending, const pb::Hello& hello,
               const pb::Identity& identity);

  asio::io_context& io_;
  Rules rules_;
  Handlers handlers_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::set<std::shared_ptr<PendingConnection>> pending_;
  std::set<std::int32_t> ranks_;  // admitted ranks
};

}  // namespace hyperrun::control
