// The device's side of joining a run: finds the controller among several addresses, proves that it
// belongs to the run and has the controller prove the same.
#pragma once

#include <memory>
#include <string>

#include "runtime/control/connection.h"
#include "runtime/control/device_link.h"

namespace hyperrun::control {

struct Joined {
  std::shared_ptr<Connection> connection;
  double heartbeat_seconds = 0;
};

// Blocks, running `io`, until the device is in. Retries while nobody answers, until
// options.connect_seconds; throws kControl then, soon when the launcher that has started this process is gone
// or nobody listens at the address, and the controller's own error when it says no. Messages that follow the
// welcome go to the handlers.
Joined join_run(asio::io_context& io, const DeviceLinkOptions& options, Connection::OnMessage on_message,
                Connection::OnEnd on_end);

}  // namespace hyperrun::control
