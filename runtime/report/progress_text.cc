#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/report/progress.h"

namespace hyperrun {
namespace {

constexpr std::string_view kDim = "\x1b[2m", kBold = "\x1b[1m", kRed = "\x1b[1;31m", kReset = "\x1b[0m";
constexpr std::string_view kGap = "  ";

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

// The text of one value: a label before it, a unit after it. Values have a fixed width wherever they can,
// so that nothing jumps from step to step.
struct Field {
  std::string_view label, short_label;
  std::string value;
  std::string_view unit, short_unit;
  int keep;  // the fields that keep their place longest have the highest
  std::string_view style = "";
};

std::string number(double v, const char* pattern) {
  if (!std::isfinite(v)) return format("%5s", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
  return format(std::abs(v) < 1e4 ? pattern : "%.1e", v);
}

std::string rate(double v) {
  if (!std::isfinite(v)) return "    ?";
  if (v < 9999.5) return format("%5.0f", v);
  if (v < 99950) return format("%4.1fk", v / 1e3);
  if (v < 999500) return format("%4.0fk", v / 1e3);
  return format("%4.1fM", v / 1e6);
}

// Both in the unit that suits the budget.
std::string of_budget(Bytes used, Bytes budget) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double scale = 1;
  while (unit + 1 < kUnits.size() && static_cast<double>(budget.value) >= 1024 * scale) {
    scale *= 1024;
    ++unit;
  }
  double u = static_cast<double>(used.value) / scale, b = static_cast<double>(budget.value) / scale;
  const char* pattern = unit == 0 || b >= 1000 ? "%.0f/%.0f %s" : "%.1f/%.1f %s";
  return format(pattern, u, b, kUnits[unit]);
}

std::string duration(Nanos t) {
  long long s = std::llround(static_cast<double>(t.value) / 1e9);
  if (s >= 86400) return format("%lldd%02lldh", s / 86400, s / 3600 % 24);
  if (s >= 3600) return format("%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  return format("%lld:%02lld", s / 60, s % 60);
}

std::vector<Field> fields(const StepMetrics& m, std::int64_t steps, std::optional<Nanos> eta) {
  auto total = std::to_string(steps);
  auto finite = [](double v) { return std::isfinite(v); };
  std::vector<Field> f;
  f.push_back(
      {"step ", "step ",
       format("%*lld/%s", static_cast<int>(total.size()), static_cast<long long>(m.step), total.c_str()), "",
       "", 8});
  f.push_back({"loss ", "loss ", number(m.loss, "%6.4f"), "", "", 7, finite(m.loss) ? kBold : kRed});
  f.push_back(
      {"grad-norm ", "grad ", number(m.grad_norm, "%5.3f"), "", "", 2, finite(m.grad_norm) ? "" : kRed});
  f.push_back({"lr ", "lr ", number(m.lr, "%.2e"), "", "", 1});
  f.push_back({"", "", rate(m.tokens_per_second), " tokens/s", " tok/s", 5});
  f.push_back({"HBM ", "HBM ", of_budget(m.hbm_peak, m.hbm_budget), "", "", 4});
  f.push_back({"exposed comm ", "comm ", number(m.exposed_communication * 100, "%2.0f"), "%", "%", 3});
  if (eta && m.step < steps) f.push_back({"ETA ", "ETA ", duration(*eta), "", "", 6});
  return f;
}

std::string plain(const Field& f, bool brief) {
  std::string text(brief ? f.short_label : f.label);
  return text + f.value + std::string(brief ? f.short_unit : f.unit);
}

std::string styled(const Field& f, bool brief) {
  auto dim = [](std::string_view t) {
    return t.empty() ? std::string() : std::string(kDim) + std::string(t) + std::string(kReset);
  };
  std::string value = f.style.empty() ? f.value : std::string(f.style) + f.value + std::string(kReset);
  return dim(brief ? f.short_label : f.label) + value + dim(brief ? f.short_unit : f.unit);
}

int width_of(const std::vector<Field>& f, bool brief) {
  std::size_t width = 0;
  for (const auto& field : f) width += plain(field, brief).size() + kGap.size();
  return static_cast<int>(width) - static_cast<int>(kGap.size());
}

void drop_least(std::vector<Field>& f) {
  auto least = f.begin();
  for (auto i = f.begin(); i != f.end(); ++i) {
    if (i->keep < least->keep) least = i;
  }
  f.erase(least);
}

}  // namespace

std::string progress_text(const StepMetrics& metrics, std::int64_t steps, std::optional<Nanos> eta, int width,
                          bool color) {
  auto f = fields(metrics, steps, eta);
  bool brief = width_of(f, false) > width;
  while (f.size() > 1 && width_of(f, brief) > width) drop_least(f);

  std::string text;
  for (const auto& field : f) {
    if (!text.empty()) text += kGap;
    text += color ? styled(field, brief) : plain(field, brief);
  }
  if (width_of(f, brief) > width)
    text = plain(f.front(), true).substr(0, static_cast<std::size_t>(std::max(width, 0)));
  return text;
}

}  // namespace hyperrun
