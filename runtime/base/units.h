// Units and ids have types of their own: bytes cannot be added to nanoseconds, and a buffer's index cannot be
// taken for a tensor's.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hyperrun {

template <class Tag>
struct Quantity {
  std::int64_t value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity o) const { return Quantity(value + o.value); }
  constexpr Quantity operator-(Quantity o) const { return Quantity(value - o.value); }
  constexpr Quantity operator*(std::int64_t f) const { return Quantity(value * f); }
  constexpr Quantity operator/(std::int64_t d) const { return Quantity(value / d); }
  constexpr Quantity& operator+=(Quantity o) { return value += o.value, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value -= o.value, *this; }
};

using Bytes = Quantity<struct BytesTag>;
using Nanos = Quantity<struct NanosTag>;
using Flops = Quantity<struct FlopsTag>;

inline constexpr Bytes kKiB{1024}, kMiB{1024 * 1024}, kGiB{1024LL * 1024 * 1024};

std::string to_string(Bytes b);  // "1.50 MiB"
std::string to_string(Nanos t);  // "12.3 ms"

// An index into one vector of the IR; -1: none.
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t v) : value(static_cast<std::int32_t>(v)) {}

  constexpr bool valid() const { return value >= 0; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace hyperrun

template <class Tag>
struct std::hash<hyperrun::Id<Tag>> {
  std::size_t operator()(hyperrun::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.value); }
};
