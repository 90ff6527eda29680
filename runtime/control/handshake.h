// The device's side of joining a run. It finds the controller among several addresses, proves that it belongs
// to the run and has the controller prove the same.
#pragma once

#include <memory>
#include <string>

#include "runtime/control/connection.h"
#include "runtime/control/device_link.h"

namespace hyperrun::control {

struct Joined {
  std::shared_ptr<Connection> connection;
  double heartbeat_seconds = 0;
  std::int32_t devices = 0;  // of the run
};

// Blocks, running `io`, until the device is admitted. Retries until options.connect_seconds if nobody
// answers, and then throws kControl. A connection must be there within options.attempt_seconds; what is said
// over it may take as long as it takes, since a controller under load is slow. join_run throws soon if the
// launcher that started this process is gone, nobody listens at the address or its host does not answer. A
// rejection is thrown as the controller's own error. Messages after the welcome go to the handlers.
Joined join_run(asio::io_context& io, const DeviceLinkOptions& options, Connection::OnMessage on_message,
                Connection::OnEnd on_end);

}  // namespace hyperrun::control
