#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/report/progress.h"

namespace hyperrun {
namespace {

constexpr std::string_view kDim = "\x1b[2m", kBold = "\x1b[1m", kRed = "\x1b[1;31m", kReset = "\x1b[0m";

// The room for labels and digits. With the least, a line fits into 80 columns even if a run has a hundred
// thousand steps and takes hours.
enum class Room { kWide, kBrief, kTight, kLeast };
constexpr std::array kRooms{Room::kWide, Room::kBrief, Room::kTight, Room::kLeast};

std::string_view gap(Room room) { return room >= Room::kTight ? " " : "  "; }

// The text of one value: a label before it, a unit after it. Values have a fixed width if possible, so that
// nothing jumps from step to step.
struct Form {
  std::string_view label;
  std::string value;
  std::string_view unit;
};
struct Field {
  std::array<Form, kRooms.size()> forms;  // text by room
  int keep;                               // fields with a higher number are dropped later
  std::string_view style = "";

  const Form& in(Room room) const { return forms[static_cast<std::size_t>(room)]; }
};

std::string number(double v, fmt::string_view pattern) {
  if (!std::isfinite(v)) return fmt::format("{:>5}", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
  return fmt::format(fmt::runtime(std::abs(v) < 1e4 ? pattern : "{:.1e}"), v);
}

// The value with as many decimals as fit the width.
std::string within(double v, int width) {
  const double size = std::abs(v);
  if (!(size < 1e4)) return number(v, "{:.0f}");
  const int before = size < 10 ? 1 : size < 100 ? 2 : size < 1000 ? 3 : 4;
  return fmt::format("{:{}.{}f}", v, width, std::max(0, width - 1 - before));
}

// The value as "3e-4".
std::string brief_power(double v) {
  std::string text = number(v, "{:.0e}");
  const std::size_t sign = text.find_first_of("+-", 1);
  if (sign != std::string::npos && text[sign + 1] == '0') text.erase(sign + 1, 1);
  return text;
}

std::string rate(double v) {
  if (!std::isfinite(v)) return "    ?";
  if (v < 9999.5) return fmt::format("{:5.0f}", v);
  if (v < 99950) return fmt::format("{:4.1f}k", v / 1e3);
  if (v < 999500) return fmt::format("{:4.0f}k", v / 1e3);
  return fmt::format("{:4.1f}M", v / 1e6);
}

// Both values in the unit that suits the budget.
std::string of_budget(Bytes used, Bytes budget, std::string_view space, bool whole) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double scale = 1;
  while (unit + 1 < kUnits.size() && static_cast<double>(budget.value) >= 1024 * scale) {
    scale *= 1024;
    ++unit;
  }
  const double u = static_cast<double>(used.value) / scale, b = static_cast<double>(budget.value) / scale;
  const int digits = unit == 0 || b >= 1000 || (whole && b >= 10) ? 0 : 1;
  return fmt::format("{:.{}f}/{:.{}f}", u, digits, b, digits) + std::string(space) + kUnits[unit];
}

std::string duration(Nanos t) {
  long long s = std::llround(static_cast<double>(t.value) / 1e9);
  if (s >= 86400) return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string short_duration(Nanos t) {
  const long long s = std::llround(static_cast<double>(t.value) / 1e9);
  if (s >= 864000) return fmt::format("{}d", s / 86400);
  return s < 3600 || s >= 86400 ? duration(t) : fmt::format("{}h{:02}", s / 3600, s / 60 % 60);
}

std::vector<Field> fields(const StepMetrics& m, std::int64_t steps, const ProgressTime& time) {
  const std::string total = std::to_string(steps);
  const std::string step = fmt::format("{:{}}/{}", m.step, total.size(), total);
  const auto alarm = [](double v, std::string_view normal) { return std::isfinite(v) ? normal : kRed; };
  const std::string loss = number(m.loss, "{:6.4f}"), near_loss = within(m.loss, 5);
  const std::string norm = number(m.grad_norm, "{:5.3f}"), near_norm = within(m.grad_norm, 4);
  const std::string lr = number(m.lr, "{:.2e}"), speed = rate(m.tokens_per_second);
  const std::string exposed = number(m.exposed_communication * 100, "{:2.0f}");
  const std::string hbm = of_budget(m.hbm_peak, m.hbm_budget, " ", false);
  const std::string close_hbm = of_budget(m.hbm_peak, m.hbm_budget, "", false);
  const std::string whole_hbm = of_budget(m.hbm_peak, m.hbm_budget, "", true);

  std::vector<Field> f;
  f.push_back({{{{"step ", step, ""}, {"step ", step, ""}, {"", step, ""}, {"", step, ""}}}, 8});
  f.push_back(
      {{{{"loss ", loss, ""}, {"loss ", loss, ""}, {"loss ", near_loss, ""}, {"loss ", near_loss, ""}}},
       7,
       alarm(m.loss, kBold)});
  f.push_back(
      {{{{"grad-norm ", norm, ""}, {"grad ", norm, ""}, {"grad ", near_norm, ""}, {"grad ", near_norm, ""}}},
       2,
       alarm(m.grad_norm, "")});
  f.push_back({{{{"lr ", lr, ""},
                 {"lr ", lr, ""},
                 {"lr ", number(m.lr, "{:.1e}"), ""},
                 {"lr ", brief_power(m.lr), ""}}},
               1});
  f.push_back(
      {{{{"", speed, " tokens/s"}, {"", speed, " tok/s"}, {"", speed, " t/s"}, {"", speed, "t/s"}}}, 5});
  f.push_back({{{{"HBM ", hbm, ""}, {"HBM ", hbm, ""}, {"", close_hbm, ""}, {"", whole_hbm, ""}}}, 4});
  f.push_back({{{{"exposed comm ", exposed, "%"},
                 {"comm ", exposed, "%"},
                 {"comm", exposed, "%"},
                 {"comm", exposed, "%"}}},
               3});
  const bool last = m.step >= steps;
  if (const std::optional<Nanos> t = last ? time.elapsed : time.eta) {
    const std::string_view label = last ? "in " : "ETA ";
    const std::string full = duration(*t);
    f.push_back(
        {{{{label, full, ""}, {label, full, ""}, {label, full, ""}, {label, short_duration(*t), ""}}}, 6});
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

std::string describe_progress(const StepMetrics& metrics, std::int64_t steps, ProgressTime time, int width,
                              bool color) {
  auto f = fields(metrics, steps, time);
  const auto fits = [&](Room room) { return width_of(f, room) <= width; };
  const auto widest = std::ranges::find_if(kRooms, fits);
  const Room room = widest == kRooms.end() ? Room::kLeast : *widest;
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
