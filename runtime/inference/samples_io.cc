#include "runtime/inference/samples_io.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// The first number of samples. Requests begin with a number above 0, input vectors with one below 0.
constexpr std::int32_t kMark = 0;
enum Trains : std::int32_t { kNothing, kPolicy, kTexts };
struct Head {
  std::int32_t mark = kMark, tokens = 0;
  std::int32_t trains = kNothing;
  std::int32_t features = 0;
  std::int64_t positions = 0;
};
constexpr std::size_t kWord = 4;
constexpr std::uint64_t kMostFeatures = 1024;

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

// The arrays of numbers that positions have besides their tokens.
template <class S>
auto numbers_of(S& s, std::int32_t trains) {
  std::vector list{&s.weight, &s.advantage, &s.behaviour, &s.reference};
  list.resize(trains == kNothing ? 0 : trains == kTexts ? 1 : list.size());
  return list;
}

}  // namespace

std::string to_bytes(const Samples& s) {
  const std::int32_t trains = s.weight.empty() ? kNothing : s.advantage.empty() ? kTexts : kPolicy;
  const Head head{kMark, static_cast<std::int32_t>(s.tokens), trains,
                  static_cast<std::int32_t>(s.features.size()), std::ssize(s.ids)};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  const auto add = [&](const auto& of_positions) {
    HR_CHECK(of_positions.size() == s.ids.size(), "a number for each token");
    append(bytes, of_positions);
  };
  add(s.ids);
  add(s.targets);
  for (const std::vector<float>* numbers : numbers_of(s, trains)) add(*numbers);
  for (const std::vector<std::int32_t>& rows : s.features) add(rows);
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
  check(head.trains >= kNothing && head.trains <= kTexts && head.features >= 0);
  Samples s;
  const std::vector<std::vector<float>*> numbers = numbers_of(s, head.trains);
  const auto n = static_cast<std::uint64_t>(head.positions),
             features = static_cast<std::uint64_t>(head.features), arrays = 2 + numbers.size() + features;
  check(n <= bytes.size() && features <= kMostFeatures && n * arrays * kWord == bytes.size());
  s.tokens = head.tokens;
  take(bytes, n, s.ids);
  take(bytes, n, s.targets);
  for (std::vector<float>* of_positions : numbers) take(bytes, n, *of_positions);
  s.features.resize(features);
  for (std::vector<std::int32_t>& rows : s.features) take(bytes, n, rows);
  return s;
}

}  // namespace hyperrun
