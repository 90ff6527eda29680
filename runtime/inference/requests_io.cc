#include "runtime/inference/requests_io.h"

#include <array>
#include <cstring>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// The head: Requests::tokens, Requests::width, and the number of ids. The ids follow, then the rows.
constexpr std::size_t kHead = 3;

}  // namespace

std::string to_bytes(const Requests& r) {
  std::vector<std::int32_t> words{static_cast<std::int32_t>(r.tokens), static_cast<std::int32_t>(r.width),
                                  static_cast<std::int32_t>(r.ids.size())};
  words.insert(words.end(), r.ids.begin(), r.ids.end());
  words.insert(words.end(), r.rows.begin(), r.rows.end());
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::int32_t)};
}

Requests requests_from_bytes(std::string_view bytes) {
  std::vector<std::int32_t> words(bytes.size() / sizeof(std::int32_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::int32_t));
  const auto check = [](bool holds) {
    if (!holds) throw Error(Code::kControl, "an invocation has no requests, or torn ones");
  };
  check(bytes.size() % sizeof(std::int32_t) == 0 && words.size() >= kHead && words[0] > 0 && words[1] > 0);
  const auto ids = static_cast<std::size_t>(words[2]);
  check(words[2] >= 0 && ids <= words.size() - kHead && ids % static_cast<std::size_t>(words[0]) == 0);
  const auto first_id = words.begin() + static_cast<std::ptrdiff_t>(kHead), first_row = first_id + words[2];
  Requests r{words[0], words[1], {first_id, first_row}, {first_row, words.end()}};
  check(r.rows.size() == ids / static_cast<std::size_t>(words[0]) * static_cast<std::size_t>(words[1]));
  return r;
}

}  // namespace hyperrun
