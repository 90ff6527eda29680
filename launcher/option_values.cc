#include "launcher/option_values.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <string_view>

namespace hyperrun {
namespace {

using Check = std::function<std::string(std::string_view part)>;

// The first error in a list with commas; empty if the list is legal.
std::string why_not_list(const std::string& value, const Check& check) {
  for (const std::string_view part : split(value, ',')) {
    if (part.empty())
      return value.empty() ? "it cannot be empty" : fmt::format("a value is missing in \"{}\"", value);
    if (const std::string why = check(part); !why.empty()) return why;
  }
  return "";
}

CLI::Option* add_list(CLI::App& app, const std::string& name, const std::string& legal,
                      const std::string& description, const Check& check,
                      const std::function<void(std::string_view part)>& take) {
  const auto take_all = [take](const std::vector<std::string>& given) {
    for (const std::string& value : given)
      for (const std::string_view part : split(value, ',')) take(part);
  };
  const auto check_all = [check](std::string& value) { return why_not_list(value, check); };
  return app.add_option_function<std::vector<std::string>>(name, take_all, description)
      ->allow_extra_args(false)
      ->type_name("LIST")
      ->check(CLI::Validator(check_all, legal));
}

}  // namespace

CLI::Validator non_empty() {
  const auto check = [](std::string& value) -> std::string {
    if (value.empty()) return "it cannot be empty";
    if (value.starts_with("--")) return fmt::format("a value is missing: {} is an option", value);
    return "";
  };
  return {check, ""};
}

CLI::Validator number_between(double least, double most) {
  const auto check = [=](std::string& value) -> std::string {
    char* end = nullptr;
    const double parsed = std::strtod(value.c_str(), &end);
    if (value.empty() || end != value.c_str() + value.size() || std::isnan(parsed))
      return fmt::format("\"{}\" is no number", value);
    if (parsed < least) return fmt::format("{} is less than {:g}", value, least);
    if (parsed > most) return fmt::format("{} is more than {:g}", value, most);
    return "";
  };
  return {check, fmt::format("{:g} to {:g}", least, most)};
}

CLI::Validator random_seed() { return whole_number_between<std::uint64_t>(0, UINT64_MAX); }

CLI::Option* add_numbers(CLI::App& app, const std::string& name, std::vector<std::int32_t>& numbers,
                         std::int32_t least, std::int32_t most, const std::string& description) {
  const auto read = [=](std::string_view part, std::int32_t& value) {
    return why_not_whole(part, least, most, value);
  };
  return add_list(
      app, name, describe_range(least, most) + ", several with commas between", description,
      [=](std::string_view part) {
        std::int32_t value = 0;
        return read(part, value);
      },
      [&numbers, read](std::string_view part) { read(part, numbers.emplace_back()); });
}

CLI::Option* add_words(CLI::App& app, const std::string& name, std::vector<std::string>& words,
                       const std::string& form, const std::string& description) {
  return add_list(
      app, name, form + ", several with commas between", description,
      [](std::string_view) { return std::string(); },
      [&words](std::string_view part) { words.emplace_back(part); });
}

}  // namespace hyperrun
