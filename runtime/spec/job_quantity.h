// Quantities as text: a number, an optional space, and a unit (kNumber has none). Examples are "64 MiB",
// "1.5GiB", "99.5 TFLOP/s", "2 us".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hyperrun {

// kSpan: times that people wait, in seconds, "30 min".
enum class QuantityKind { kBytes, kTime, kSpan, kFlopRate, kByteRate, kNumber };

// The value in the base unit (B, ns, s, FLOP/s, B/s); nullopt if the text is no quantity of that kind.
std::optional<double> parse_quantity(QuantityKind kind, std::string_view text);

// The value as text, with the largest unit whose number reads back as exactly the same value.
std::string format_quantity(QuantityKind kind, double value);

// "B", "ns", "s", "FLOP/s", "B/s"; empty for kNumber.
std::string_view base_unit(QuantityKind kind);

// The legal units with an example, for messages.
std::string units_of(QuantityKind kind);

// The fewest digits that read back as the same double: 0.001, 1e-08.
std::string shortest(double v);

}  // namespace hyperrun
