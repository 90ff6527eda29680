#include "runtime/report/axis.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include "runtime/report/table.h"

namespace hyperrun {
namespace {

// The least step of 1, 2, 2.5 or 5 times a power of ten that needs no more than `count` steps.
double round_step(double range, int count) {
  double least = range / count;
  double power = std::pow(10.0, std::floor(std::log10(least)));
  for (double digit : {1.0, 2.0, 2.5, 5.0}) {
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

int decimals_of(double step) {
  int decimals = 0;
  while (decimals < 9 && std::abs(step - std::round(step)) > 1e-6 * step) {
    step *= 10;
    ++decimals;
  }
  return decimals;
}

std::vector<double> ticks_between(double low, double high, double step) {
  std::vector<double> ticks;
  auto first = static_cast<long long>(std::ceil(low / step - 1e-9));
  auto last = static_cast<long long>(std::floor(high / step + 1e-9));
  for (auto i = first; i <= last; ++i) ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

struct Unit {
  const char* name;
  double one;
};

constexpr Unit kOfBytes[] = {{"B", 1},        {"KiB", 0x1p10}, {"MiB", 0x1p20},
                             {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}};
constexpr Unit kOfTime[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

// An axis from 0, in the largest unit of which `high` has at least one.
Axis axis_with_unit(double high, std::span<const Unit> units) {
  Axis axis;
  axis.high = std::max(1.0, high);
  Unit unit = units.front();
  for (const Unit& u : units)
    if (u.one <= axis.high) unit = u;
  axis.one = unit.one;
  axis.unit = unit.name;
  return axis;
}

std::string number(double value, int decimals) {
  if (std::abs(value) >= 1e7) return fmt::format("{:.3g}", value);
  if (decimals == 0) return with_separators(std::llround(value));
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string Axis::label(double tick) const {
  if (logarithmic) return fmt::format("{:g}", tick / one) + (unit.empty() ? "" : " " + unit);
  return number(tick / one, decimals) + (unit.empty() ? "" : " " + unit);
}

Axis value_axis(double low, double high, int count) {
  if (high - low <= std::abs(high) * 1e-9) {
    double room = std::max(std::abs(high) * 0.1, 1e-3);
    low -= room;
    high += room;
  }
  double step = round_step(high - low, count);
  Axis axis;
  axis.low = std::floor(low / step + 1e-9) * step;
  axis.high = std::ceil(high / step - 1e-9) * step;
  axis.ticks = ticks_between(axis.low, axis.high, step);
  axis.decimals = decimals_of(step);
  return axis;
}

Axis whole_axis(double low, double high, int count) {
  if (high <= low) high = low + 1;
  Axis axis;
  axis.low = low;
  axis.high = high;
  double step = std::max(1.0, round_step(high - low, count));
  axis.ticks = ticks_between(low, high, step == 2.5 ? 5 : step);
  return axis;
}

Axis bytes_axis(double high, int count) {
  Axis axis = axis_with_unit(high, kOfBytes);
  const double step = std::max(1.0, std::exp2(std::ceil(std::log2(axis.high / count) - 1e-9)));
  axis.ticks = ticks_between(0, axis.high, step);
  axis.decimals = decimals_of(step / axis.one);
  return axis;
}

Axis time_axis(double high, int count) {
  Axis axis = axis_with_unit(high, kOfTime);
  const double step = std::max(1.0, round_step(axis.high, count));
  axis.ticks = ticks_between(0, axis.high, step == 2.5 ? 5 : step);
  axis.decimals = decimals_of(step / axis.one);
  return axis;
}

Axis time_range_axis(double low, double high, int count) {
  constexpr double kMuch = 3;
  const Axis from_zero = axis_with_unit(high, kOfTime);
  if (high < kMuch * low) {
    Axis axis = value_axis(low / from_zero.one, high / from_zero.one, count);
    axis.one = from_zero.one, axis.unit = from_zero.unit;
    for (double* value : {&axis.low, &axis.high}) *value *= axis.one;
    for (double& tick : axis.ticks) tick *= axis.one;
    return axis;
  }
  Axis axis = from_zero;
  axis.logarithmic = true;
  constexpr double kRound = 1 + 1e-9;
  for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= 10 * high; power *= 10)
    for (const double digit : {1.0, 2.0, 5.0}) axis.ticks.push_back(digit * power);
  const auto begin = std::ranges::upper_bound(axis.ticks, low * kRound) - 1;
  const auto end = std::ranges::lower_bound(axis.ticks, high / kRound) + 1;
  axis.ticks = std::vector<double>(begin, end);
  axis.low = axis.ticks.front(), axis.high = axis.ticks.back();
  return axis;
}

}  // namespace hyperrun
