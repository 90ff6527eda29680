#include "runtime/base/units.h"

#include <array>
#include <cstdio>

namespace hyperrun {
namespace {

std::string format(double v, const char* unit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), v < 10 ? "%.2f %s" : v < 100 ? "%.1f %s" : "%.0f %s", v, unit);
  return text.data();
}

}  // namespace

std::string to_string(Bytes b) {
  if (b < kKiB) return std::to_string(b.value) + " B";
  auto v = static_cast<double>(b.value);
  if (b < kMiB) return format(v / 1024, "KiB");
  if (b < kGiB) return format(v / (1024.0 * 1024), "MiB");
  return format(v / (1024.0 * 1024 * 1024), "GiB");
}

std::string to_string(Nanos t) {
  auto v = static_cast<double>(t.value);
  if (v < 1e3) return std::to_string(t.value) + " ns";
  if (v < 1e6) return format(v / 1e3, "us");
  if (v < 1e9) return format(v / 1e6, "ms");
  return format(v / 1e9, "s");
}

}  // namespace hyperrun
