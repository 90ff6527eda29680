#include "runtime/control/connection.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "runtime/base/error.h"

namespace hyperrun::control {

using ErrorCode = boost::system::error_code;

Connection::Connection(asio::ip::tcp::socket socket, std::size_t max_frame)
    : socket_(std::move(socket)), max_frame_(max_frame), reader_(max_frame) {
  ErrorCode ignored;  // a socket without the option is only slower
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

void Connection::start(OnMessage on_message, OnEnd on_end) {
  hand_over(std::move(on_message), std::move(on_end));
  read();
}

void Connection::hand_over(OnMessage on_message, OnEnd on_end) {
  on_message_ = std::move(on_message);
  on_end_ = std::move(on_end);
}

void Connection::set_max_frame(std::size_t bytes) {
  max_frame_ = bytes;
  reader_.set_max_frame(bytes);
}

void Connection::set_peer_timeout(double seconds) {
  const auto set = [this](int level, int option, int value) {
    setsockopt(socket_.native_handle(), level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(seconds * 1000));
  // The other kernel answers these, even if its program is slow or stopped.
  const int third = std::max(1, static_cast<int>(seconds / 3));
  set(IPPROTO_TCP, TCP_KEEPIDLE, third);
  set(IPPROTO_TCP, TCP_KEEPINTVL, third);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

void Connection::read() {
  const std::span<char> room = reader_.prepare();
  socket_.async_read_some(asio::buffer(room.data(), room.size()),
                          [self = shared_from_this()](const ErrorCode& error, std::size_t bytes) {
                            if (!self->is_open()) return;
                            if (error) return self->end(error.message());
                            self->reader_.commit(bytes);
                            if (self->deliver()) self->read();
                          });
}

bool Connection::deliver() {
  try {
    while (const auto frame = reader_.next()) {
      pb::Message message;
      if (!message.ParseFromArray(frame->data(), static_cast<int>(frame->size())))
        throw Error(Code::kControl, "a frame that is no control message");
      const OnMessage handler = on_message_;  // the handler may hand the connection over while it runs
      if (handler) handler(std::move(message));
      if (!is_open()) return false;
    }
  } catch (const Error& e) {
    end(e.cause());
    return false;
  }
  return true;
}

void Connection::send(const pb::Message& message) {
  if (!is_open() || broken_) return;
  append_frame(pending_, message, max_frame_);
  schedule_write();
}

void Connection::send_frame(std::string_view frame) {
  if (!is_open() || broken_) return;
  pending_.append(frame);
  schedule_write();
}

void Connection::schedule_write() {
  if (scheduled_ || !writing_.empty()) return;
  scheduled_ = true;
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->scheduled_ = false;
    self->write();
  });
}

void Connection::write() {
  if (!is_open() || !writing_.empty()) return;
  if (pending_.empty()) return written();
  writing_.swap(pending_);
  asio::async_write(socket_, asio::buffer(writing_),
                    [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                      self->writing_.clear();
                      if (!self->is_open()) return;
                      // The other side's last messages must still be read: reading, not writing, ends the
                      // connection.
                      if (error) self->broken_ = true;
                      if (self->broken_) self->pending_.clear();
                      self->write();
                    });
}

void Connection::written() {
  if (finishing_) {
    ErrorCode ignored;  // the other side may have ended already
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
  for (const auto& callback : std::exchange(when_written_, {})) callback();
}

void Connection::when_written(std::function<void()> callback) {
  if (!is_open()) return callback();
  when_written_.push_back(std::move(callback));
  schedule_write();
}

void Connection::finish() {
  finishing_ = true;
  schedule_write();
}

void Connection::end(const std::string& reason) {
  if (!is_open()) return;
  const OnEnd on_end = on_end_;
  close();
  if (on_end) on_end(reason);
}

void Connection::close() {
  ErrorCode ignored;  // nothing can be done about an error: the descriptor is gone either way
  socket_.close(ignored);
  on_message_ = nullptr;
  on_end_ = nullptr;
  for (const auto& callback : std::exchange(when_written_, {})) callback();
}

}  // namespace hyperrun::control
