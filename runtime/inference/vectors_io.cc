#include "runtime/inference/vectors_io.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// The first number of input vectors. Requests begin with a number above 0, samples with 0.
constexpr std::int32_t kMark = -1;
struct Head {
  std::int32_t mark = kMark, reserved = 0;
  std::int64_t items = 0, tokens = 0, width = 0, first = 0;
};

// True if a x b is a legal number of elements: neither factor is negative, and neither they nor their product
// exceed an int32. A factor of 0 makes no other one legal.
bool multiplies(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return a >= 0 && b >= 0 && a <= kMost && b <= kMost && a * b <= kMost;
}

}  // namespace

std::string to_bytes(const InputVectors& v) {
  const Head head{kMark, 0, v.items, v.tokens, v.width, v.first};
  HR_CHECK(std::ssize(v.values) == v.items * v.tokens * v.width, "a number for each place of each vector");
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(v.values.data()), v.values.size() * sizeof(float));
  return bytes;
}

bool are_vectors(std::string_view bytes) {
  std::int32_t mark = 0;
  if (bytes.size() >= sizeof mark) std::memcpy(&mark, bytes.data(), sizeof mark);
  return mark == kMark;
}

InputVectors vectors_from_bytes(std::string_view bytes) {
  const auto check = [](bool holds) {
    if (!holds) throw Error(Code::kControl, "an invocation has no input vectors, or torn ones");
  };
  Head head;
  check(bytes.size() >= sizeof head);
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  check(head.mark == kMark && multiplies(head.tokens, head.width) &&
        multiplies(head.items, head.tokens * head.width));
  const auto n = static_cast<std::size_t>(head.items * head.tokens * head.width);
  check(n * sizeof(float) == bytes.size());
  InputVectors v{head.items, head.tokens, head.width, head.first, std::vector<float>(n)};
  if (n > 0) std::memcpy(v.values.data(), bytes.data(), bytes.size());
  return v;
}

}  // namespace hyperrun
