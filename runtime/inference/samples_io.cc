#include "runtime/inference/samples_io.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// Requests begin with a number above 0.
constexpr std::int32_t kMark = 0;
struct Head {
  std::int32_t mark = kMark, tokens = 0;
  std::int32_t trains = 0;  // 1: with what a policy is trained by
  std::int32_t reserved = 0;
  std::int64_t positions = 0;
};
constexpr std::size_t kWord = 4;

template <class T>
void append(std::string& to, const std::vector<T>& values) {
  static_assert(sizeof(T) == kWord);
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * kWord);
}

template <class T>
void take(std::string_view& from, std::size_t n, std::vector<T>& values) {
  values.resize(n);
  if (n > 0) std::memcpy(values.data(), from.data(), n * kWord);
  from.remove_prefix(n * kWord);
}

}  // namespace

std::string to_bytes(const Samples& s) {
  const auto trains = static_cast<std::int32_t>(!s.weight.empty());
  const Head head{kMark, static_cast<std::int32_t>(s.tokens), trains, 0, std::ssize(s.ids)};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  HR_CHECK(s.targets.size() == s.ids.size(), "a target for each token");
  append(bytes, s.ids);
  append(bytes, s.targets);
  for (const std::vector<float>* of_positions : {&s.weight, &s.advantage, &s.behaviour, &s.reference}) {
    HR_CHECK(of_positions->size() == (trains == 0 ? 0 : s.ids.size()), "a number for each token");
    append(bytes, *of_positions);
  }
  return bytes;
}

bool are_samples(std::string_view bytes) {
  std::int32_t mark = 1;
  if (bytes.size() >= sizeof mark) std::memcpy(&mark, bytes.data(), sizeof mark);
  return mark == kMark;
}

Samples samples_from_bytes(std::string_view bytes) {
  const auto check = [](bool holds) {
    if (!holds) throw Error(Code::kControl, "an invocation has no samples, or torn ones");
  };
  Head head;
  check(bytes.size() >= sizeof head);
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  check(head.mark == kMark && head.tokens > 0 && head.positions >= 0 && head.positions % head.tokens == 0);
  check(head.trains == 0 || head.trains == 1);
  const auto n = static_cast<std::uint64_t>(head.positions),
             arrays = std::uint64_t{head.trains == 0 ? 2U : 6U};
  check(n <= bytes.size() && n * arrays * kWord == bytes.size());
  Samples s;
  s.tokens = head.tokens;
  take(bytes, n, s.ids);
  take(bytes, n, s.targets);
  if (head.trains == 0) return s;
  for (std::vector<float>* of_positions : {&s.weight, &s.advantage, &s.behaviour, &s.reference})
    take(bytes, n, *of_positions);
  return s;
}

}  // namespace hyperrun
