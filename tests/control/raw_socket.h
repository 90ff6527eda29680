// Blocking sockets without manners.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace hyperrun::control {

inline sockaddr_in loopback(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {
    const timeval limit{60, 0};  // longer than any delay of a test
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  explicit RawSocket(const std::string& address) : RawSocket(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in to = loopback(std::stoi(address.substr(address.rfind(':') + 1)));
    connected = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~RawSocket() { ::close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  void write(const std::string& bytes) { send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  ssize_t read_some(char* to, std::size_t size) { return recv(fd_, to, size, 0); }
  std::string read_to_end() {
    std::string all;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = read_some(buffer, sizeof buffer)) > 0) all.append(buffer, static_cast<std::size_t>(n));
    ended = n == 0 || errno != EAGAIN;
    return all;
  }
  // Both sides see the end, and a thread that reads or accepts here returns.
  void shut_down() { shutdown(fd_, SHUT_RDWR); }
  void end_writing() { shutdown(fd_, SHUT_WR); }
  int fd() const { return fd_; }

  bool connected = false;
  bool ended = false;  // the other side closed, we did not give up waiting

 private:
  int fd_;
};

class Listener {
 public:
  Listener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(socket_.fd(), 64), 0);
    getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&at), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }

  const std::string& address() const { return address_; }
  int accept() { return ::accept(socket_.fd(), nullptr, nullptr); }  // -1 after shut_down
  void shut_down() { socket_.shut_down(); }

 private:
  RawSocket socket_;
  std::string address_;
};

}  // namespace hyperrun::control
