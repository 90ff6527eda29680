#include "runtime/spec/job_quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace hyperrun {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

// The units of bytes, largest first. Every number can be written in the base unit.
constexpr std::array kByteUnits{
    Unit{"TiB", 0x1p40}, Unit{"GiB", 0x1p30}, Unit{"MiB", 0x1p20}, Unit{"KiB", 0x1p10}, Unit{"TB", 1e12},
    Unit{"GB", 1e9},     Unit{"MB", 1e6},     Unit{"kB", 1e3},     Unit{"B", 1},
};
constexpr std::array kTimeUnits{
    Unit{"s", 1e9},
    Unit{"ms", 1e6},
    Unit{"us", 1e3},
    Unit{"ns", 1},
};
constexpr std::array kSpanUnits{
    Unit{"days", 86400}, Unit{"day", 86400}, Unit{"d", 86400}, Unit{"h", 3600},
    Unit{"min", 60},     Unit{"s", 1},       Unit{"ms", 1e-3},
};
constexpr std::array kFlopUnits{
    Unit{"PFLOP/s", 1e15}, Unit{"TFLOP/s", 1e12}, Unit{"GFLOP/s", 1e9},
    Unit{"MFLOP/s", 1e6},  Unit{"kFLOP/s", 1e3},  Unit{"FLOP/s", 1},
};
constexpr std::array kByteRateUnits{
    Unit{"TB/s", 1e12},    Unit{"GB/s", 1e9},     Unit{"MB/s", 1e6},
    Unit{"kB/s", 1e3},     Unit{"TiB/s", 0x1p40}, Unit{"GiB/s", 0x1p30},
    Unit{"MiB/s", 0x1p20}, Unit{"KiB/s", 0x1p10}, Unit{"B/s", 1},
};

constexpr std::array kNoUnits{Unit{"", 1}};

std::span<const Unit> units(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::kBytes: return kByteUnits;
    case QuantityKind::kTime: return kTimeUnits;
    case QuantityKind::kSpan: return kSpanUnits;
    case QuantityKind::kFlopRate: return kFlopUnits;
    case QuantityKind::kByteRate: return kByteRateUnits;
    case QuantityKind::kNumber: return kNoUnits;
  }
  return {};
}

// The longest number that is preferred to one with a smaller unit: 99.5 TFLOP/s reads better than
// 99500000000000 FLOP/s, but 1 MiB reads better than 0.0009765625 GiB.
constexpr std::size_t kShort = 6;

}  // namespace

std::string_view base_unit(QuantityKind kind) {
  for (const Unit& unit : units(kind))
    if (unit.scale == 1) return unit.name;
  return {};
}

std::string shortest(double v) {
  std::array<char, 32> text{};
  auto end = std::to_chars(text.data(), text.data() + text.size(), v).ptr;
  return std::string(text.data(), end);
}

std::optional<double> parse_quantity(QuantityKind kind, std::string_view text) {
  double number = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  for (const Unit& unit : units(kind)) {
    if (unit.name != text) continue;
    double value = number * unit.scale;
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

std::string format_quantity(QuantityKind kind, double value) {
  for (const Unit& unit : units(kind)) {
    double number = value / unit.scale;
    if (number < 1 || number * unit.scale != value) continue;
    std::string text = shortest(number);
    if (text.size() <= kShort) return text + " " + std::string(unit.name);
  }
  return shortest(value) + " " + std::string(base_unit(kind));
}

std::string units_of(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::kBytes:
      return "a number and B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (powers of 1024): \"64 "
             "MiB\"";
    case QuantityKind::kTime: return "a number and ns, us, ms or s: \"2 us\"";
    case QuantityKind::kSpan: return "a number and ms, s, min, h or days: \"30 min\"";
    case QuantityKind::kFlopRate: return "a number and FLOP/s after none or k, M, G, T, P: \"99.5 TFLOP/s\"";
    case QuantityKind::kByteRate:
      return "a number and B/s after none or k, M, G, T (or Ki, Mi, Gi, Ti): \"196 GB/s\"";
    case QuantityKind::kNumber: return "a number in quotes: \"0.8\"";
  }
  return {};
}

}  // namespace hyperrun
