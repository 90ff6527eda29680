// Checks of option values for CLI11:
//
//   app.add_option("--steps", steps)->check(whole_number_between(1, 1000000));
//
// A check's description lists the legal values, for the help and for errors (usage.h). Its result is the
// cause of the error, or empty if the value is legal.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/split.h"
#include "runtime/base/whole_number.h"

namespace hyperrun {

// Rejects an empty value, which is usually an unset variable of a script. Also rejects an option in the
// value's place: then the value was forgotten.
CLI::Validator non_empty();

// Accepts numbers within the range. Rejects NaN, which passes any range check.
CLI::Validator number_between(double least, double most);

template <class T>
std::string describe_range(T least, T most) {
  return fmt::format("{} to {}", least, most);
}

template <class T>
CLI::Validator whole_number_between(T least, T most) {
  const auto check = [=](std::string& value) {
    T number{};
    const std::string why = why_not_whole(value, least, most, number);
    if (why.empty()) value = std::to_string(number);  // CLI11 would read 010 as octal
    return why;
  };
  return {check, describe_range(least, most)};
}

// Accepts seeds of random numbers. Rejects negative numbers, which CLI11 would wrap to large ones.
CLI::Validator random_seed();

// An option with a list of numbers in one word, "64,128,256". The next word is another argument, perhaps the
// job.
CLI::Option* add_numbers(CLI::App& app, const std::string& name, std::vector<std::int32_t>& numbers,
                         std::int32_t least, std::int32_t most, const std::string& description);
// An option with a list of words in one word, "7:1.3,9:2". `form` describes one element in the help.
CLI::Option* add_words(CLI::App& app, const std::string& name, std::vector<std::string>& words,
                       const std::string& form, const std::string& description);

}  // namespace hyperrun
