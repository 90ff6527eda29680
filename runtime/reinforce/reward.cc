#include "runtime/reinforce/reward.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double near(std::string_view answer, std::string_view completion) {
  const std::optional<std::int64_t> wanted = number(answer), given = number(completion);
  if (!wanted || !given) return 0;
  return 1 / (1 + std::abs(static_cast<double>(*wanted) - static_cast<double>(*given)));
}

}  // namespace

double reward(std::string_view rule, const Task& task, std::string_view completion) {
  const std::string_view wanted = trimmed(task.answer), given = trimmed(completion);
  if (wanted == given) return 1;
  return rule == "arithmetic" ? near(wanted, given) : 0;
}

std::vector<float> advantages(const std::vector<double>& rewards, std::size_t samples) {
  HR_CHECK(samples > 0 && rewards.size() % samples == 0);
  std::vector<float> list;
  for (std::size_t first = 0; first < rewards.size(); first += samples) {
    double sum = 0, squares = 0;
    for (std::size_t i = first; i < first + samples; ++i) sum += rewards[i];
    const double mean = sum / static_cast<double>(samples);
    for (std::size_t i = first; i < first + samples; ++i)
      squares += (rewards[i] - mean) * (rewards[i] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(samples));
    constexpr double kAlike = 1e-6;  // equal rewards have a smaller deviation, from rounding
    for (std::size_t i = first; i < first + samples; ++i)
      list.push_back(deviation < kAlike ? 0.0F : static_cast<float>((rewards[i] - mean) / deviation));
  }
  return list;
}

}  // namespace hyperrun
