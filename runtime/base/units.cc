#include "runtime/base/units.h"

#include <fmt/core.h>

namespace hyperrun {
namespace {

// The value with three digits.
std::string rounded(double v, const char* unit) {
  return fmt::format("{:.{}f} {}", v, v < 10 ? 2 : v < 100 ? 1 : 0, unit);
}

}  // namespace

std::string to_string(Bytes b) {
  if (b < kKiB) return std::to_string(b.value) + " B";
  auto v = static_cast<double>(b.value);
  if (b < kMiB) return rounded(v / 1024, "KiB");
  if (b < kGiB) return rounded(v / (1024.0 * 1024), "MiB");
  return rounded(v / (1024.0 * 1024 * 1024), "GiB");
}

std::string to_string(Nanos t) {
  auto v = static_cast<double>(t.value);
  if (v < 1e3) return std::to_string(t.value) + " ns";
  if (v < 1e6) return rounded(v / 1e3, "us");
  if (v < 1e9) return rounded(v / 1e6, "ms");
  return rounded(v / 1e9, "s");
}

}  // namespace hyperrun
