// A TCP connection that carries frames. Messages sent within one turn of the io_context go out in one write.
// It is used on the io_context's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>  // before Asio: Boost 1.74 under C++20 needs it

#include "proto/control.pb.h"
#include "runtime/control/frame.h"

namespace hyperrun::control {

namespace asio = boost::asio;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using OnMessage = std::function<void(pb::Message&&)>;
  using OnEnd = std::function<void(const std::string& reason)>;  // called once; not after close()

  Connection(asio::ip::tcp::socket socket, std::size_t max_frame);

  void start(OnMessage on_message, OnEnd on_end);
  // Replaces the handlers; a handler may call it, too.
  void hand_over(OnMessage on_message, OnEnd on_end);
  void set_max_frame(std::size_t bytes);
  // Ends the connection once the other host is silent for so long: it is gone without a word. A program there
  // that is only slow does not count.
  void set_peer_timeout(double seconds);

  void send(const pb::Message& message);
  void send_frame(std::string_view frame);  // a frame from append_frame
  // Calls back when everything sent so far is written, or the connection has ended.
  void when_written(std::function<void()> callback);
  // Sends pending data and then ends our direction; the other side's end still arrives.
  void finish();
  void close();
  bool is_open() const { return socket_.is_open(); }

 private:
  void read();
  bool deliver();
  void schedule_write();
  void write();
  void written();
  void end(const std::string& reason);

  asio::ip::tcp::socket socket_;
  std::size_t max_frame_;
  FrameReader reader_;
  OnMessage on_message_;
  OnEnd on_end_;
  std::string pending_, writing_;
  bool scheduled_ = false, finishing_ = false, broken_ = false;
  std::vector<std::function<void()>> when_written_;
};

}  // namespace hyperrun::control
