#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/report/progress.h"

namespace hyperrun {
namespace {

constexpr std::string_view kDim = "\x1b[2m", kBold = "\x1b[1m", kRed = "\x1b[1;31m", kReset = "\x1b[0m";

// How much room there is for labels and digits. All of a line fits 80 columns when it is tight.
enum class Room { kWide, kBrief, kTight };

std::string_view gap(Room room) { return room == Room::kTight ? " " : "  "; }

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

// The text of one value: a label before it, a unit after it. Values have a fixed width wherever they can,
// so that nothing jumps from step to step.
struct Form {
  std::string_view label;
  std::string value;
  std::string_view unit;
};
struct Field {
  Form wide, brief, tight;
  int keep;  // the fields that keep their place longest have the highest
  std::string_view style = "";

  const Form& in(Room room) const {
    return room == Room::kWide ? wide : room == Room::kBrief ? brief : tight;
  }
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
  const std::string total = std::to_string(steps);
  const std::string step =
      format("%*lld/%s", static_cast<int>(total.size()), static_cast<long long>(m.step), total.c_str());
  const auto alarm = [](double v, std::string_view normal) { return std::isfinite(v) ? normal : kRed; };
  const std::string loss = number(m.loss, "%6.4f"), norm = number(m.grad_norm, "%5.3f"),
                    lr = number(m.lr, "%.2e"), speed = rate(m.tokens_per_second),
                    hbm = of_budget(m.hbm_peak, m.hbm_budget),
                    exposed = number(m.exposed_communication * 100, "%2.0f");
  std::string close_hbm = hbm;
  std::erase(close_hbm, ' ');
  std::vector<Field> f;
  f.push_back({{"step ", step, ""}, {"step ", step, ""}, {"", step, ""}, 8});
  f.push_back({{"loss ", loss, ""},
               {"loss ", loss, ""},
               {"loss ", number(m.loss, "%5.3f"), ""},
               7,
               alarm(m.loss, kBold)});
  f.push_back({{"grad-norm ", norm, ""},
               {"grad ", norm, ""},
               {"grad ", number(m.grad_norm, "%4.2f"), ""},
               2,
               alarm(m.grad_norm, "")});
  f.push_back({{"lr ", lr, ""}, {"lr ", lr, ""}, {"lr ", number(m.lr, "%.1e"), ""}, 1});
  f.push_back({{"", speed, " tokens/s"}, {"", speed, " tok/s"}, {"", speed, " t/s"}, 5});
  f.push_back({{"HBM ", hbm, ""}, {"HBM ", hbm, ""}, {"", close_hbm, ""}, 4});
  f.push_back({{"exposed comm ", exposed, "%"}, {"comm ", exposed, "%"}, {"comm", exposed, "%"}, 3});
  if (eta && m.step < steps) {
    const std::string left = duration(*eta);
    f.push_back({{"ETA ", left, ""}, {"ETA ", left, ""}, {"ETA ", left, ""}, 6});
  }
  return f;
}

std::string plain(const Field& f, Room room) {
  const Form& form = f.in(room);
  return std::string(form.label) + form.value + std::string(form.unit);
}

std::string styled(const Field& f, Room room) {
  const auto dim = [](std::string_view t) {
    return t.empty() ? std::string() : std::string(kDim) + std::string(t) + std::string(kReset);
  };
  const Form& form = f.in(room);
  const std::string value =
      f.style.empty() ? form.value : std::string(f.style) + form.value + std::string(kReset);
  return dim(form.label) + value + dim(form.unit);
}

int width_of(const std::vector<Field>& f, Room room) {
  std::size_t width = 0;
  for (const auto& field : f) width += plain(field, room).size() + gap(room).size();
  return static_cast<int>(width) - static_cast<int>(gap(room).size());
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
  Room room = Room::kWide;
  if (width_of(f, room) > width) room = Room::kBrief;
  if (width_of(f, room) > width) room = Room::kTight;
  while (f.size() > 1 && width_of(f, room) > width) drop_least(f);

  std::string text;
  for (const auto& field : f) {
    if (!text.empty()) text += gap(room);
    text += color ? styled(field, room) : plain(field, room);
  }
  if (width_of(f, room) > width)
    text = plain(f.front(), room).substr(0, static_cast<std::size_t>(std::max(width, 0)));
  return text;
}

}  // namespace hyperrun
