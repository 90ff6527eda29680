// A frame on a byte stream: a 4-byte little-endian length, then that many bytes of one pb::Message.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class MessageLite;
}

namespace hyperrun::control {

inline constexpr std::size_t kFrameHeader = 4;

// Appends one frame. Throws kControl if the message is larger than max_frame.
void append_frame(std::string& out, const google::protobuf::MessageLite& message, std::size_t max_frame);

// Cuts a stream into frames. Its memory grows with the bytes that have arrived, never with a length that a
// header claims.
class FrameReader {
 public:
  explicit FrameReader(std::size_t max_frame) : max_frame_(max_frame) {}

  void set_max_frame(std::size_t bytes) { max_frame_ = bytes; }

  // prepare() gives room for the next read; commit() says how many bytes were read.
  std::span<char> prepare();
  void commit(std::size_t bytes) { end_ += bytes; }

  // Returns the next whole frame, without its header; valid until prepare(). Throws kControl on a length of
  // zero or above the limit.
  std::optional<std::string_view> next();

 private:
  std::size_t max_frame_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // range of bytes received and not yet handed out
};

}  // namespace hyperrun::control
