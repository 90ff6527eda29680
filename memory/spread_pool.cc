#include "memory/spread_pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {

SpreadPool::SpreadPool(Arena segment, std::vector<PoolExtent> part, RemoteMemory& remote)
    : segment_(std::move(segment)), part_(std::move(part)), remote_(remote) {
  for (const PoolExtent& e : part_) {
    begins_.push_back(size_);
    size_ += e.bytes;
  }
}

template <class Fn>
void SpreadPool::for_each_piece(Bytes offset, Bytes bytes, Fn fn) const {
  HR_CHECK(offset.value >= 0 && bytes <= size_ && offset <= size_ - bytes,
           fmt::format("offset {} + {} of {} bytes", offset.value, bytes.value, size_.value));
  for (std::size_t i = 0; i < part_.size(); ++i) {
    const Bytes from = std::max(offset, begins_[i]);
    const Bytes to = std::min(offset + bytes, begins_[i] + part_[i].bytes);
    if (from >= to) continue;
    fn(part_[i].rank, part_[i].offset + (from - begins_[i]), static_cast<std::size_t>((from - offset).value),
       static_cast<std::size_t>((to - from).value));
  }
}

void SpreadPool::read(Bytes offset, std::span<std::byte> into) {
  for_each_piece(offset, Bytes(std::ssize(into)), [&](int rank, Bytes there, std::size_t at, std::size_t n) {
    const auto bytes = static_cast<std::int64_t>(n);
    if (rank == segment_.rank()) {
      std::memcpy(into.data() + at, segment_.view(there, Bytes(bytes)).data(), n);
      return;
    }
    remote_.read(rank, there, into.subspan(at, n));
    read_ += bytes;
  });
}

void SpreadPool::write(Bytes offset, std::span<const std::byte> from) {
  const std::int64_t end = offset.value + std::ssize(from);
  for_each_piece(offset, Bytes(std::ssize(from)), [&](int rank, Bytes there, std::size_t at, std::size_t n) {
    const auto bytes = static_cast<std::int64_t>(n);
    if (rank == segment_.rank()) {
      std::memcpy(segment_.view(there, Bytes(bytes)).data(), from.data() + at, n);
      return;
    }
    remote_.write(rank, there, from.subspan(at, n));
    written_ += bytes;
  });
  for (std::int64_t seen = high_water_; seen < end && !high_water_.compare_exchange_weak(seen, end);) {
  }
}

}  // namespace hyperrun
