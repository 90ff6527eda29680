#include "runtime/control/frame.h"

#include <fmt/core.h>
#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"

namespace hyperrun::control {
namespace {

constexpr std::size_t kReadSize = std::size_t{64} << 10;

std::uint32_t length_at(const char* p) {
  const auto* b = reinterpret_cast<const unsigned char*>(p);
  return static_cast<std::uint32_t>(b[0]) | static_cast<std::uint32_t>(b[1]) << 8 |
         static_cast<std::uint32_t>(b[2]) << 16 | static_cast<std::uint32_t>(b[3]) << 24;
}

}  // namespace

void append_frame(std::string& out, const google::protobuf::MessageLite& message, std::size_t max_frame) {
  const std::size_t size = message.ByteSizeLong();
  if (size > max_frame)
    throw Error(Code::kControl,
                fmt::format("a control message of {} bytes is above the limit of {}", size, max_frame));
  const std::size_t start = out.size();
  out.resize(start + kFrameHeader + size);
  char* p = out.data() + start;
  for (std::size_t i = 0; i < kFrameHeader; ++i) p[i] = static_cast<char>(size >> (8 * i) & 0xff);
  message.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(p + kFrameHeader));
}

std::span<char> FrameReader::prepare() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kReadSize) buffer_.resize(2 * end_ + kReadSize);
  return {buffer_.data() + end_, buffer_.size() - end_};
}

std::optional<std::string_view> FrameReader::next() {
  if (end_ - begin_ < kFrameHeader) return std::nullopt;
  const std::size_t size = length_at(buffer_.data() + begin_);
  if (size == 0 || size > max_frame_)
    throw Error(Code::kControl,
                fmt::format("a frame of {} bytes, where 1 to {} are allowed", size, max_frame_));
  if (end_ - begin_ < kFrameHeader + size) return std::nullopt;
  const std::string_view frame(buffer_.data() + begin_ + kFrameHeader, size);
  begin_ += kFrameHeader + size;
  return frame;
}

}  // namespace hyperrun::control
