// What options may be given: checks for CLI11. Each is described by its legal values, as the help has them
// and an error does (usage.h); what it says of a value is the error's cause.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/split.h"
#include "runtime/base/whole_number.h"

namespace hyperrun {

// What may be said where a name or another word is wanted: none that is empty, as a variable of a script is
// that is not set, and no option, as follows where the value was forgotten.
CLI::Validator a_word();

// Not what no range refuses, as it is no number.
CLI::Validator a_number(double least, double most);

template <class T>
std::string describe_range(T least, T most) {
  return std::to_string(least) + " to " + std::to_string(most);
}

template <class T>
CLI::Validator a_whole_number(T least, T most) {
  const auto check = [=](std::string& value) {
    T number{};
    const std::string why = why_not_whole(value, least, most, number);
    if (why.empty()) value = std::to_string(number);  // CLI11 would take 010 for 8
    return why;
  };
  return {check, describe_range(least, most)};
}

// Of what is drawn. CLI11 would make a large number of one below 0.
CLI::Validator a_seed();

// "64,128,256", in one word: what follows it is another argument, the job perhaps.
CLI::Option* add_numbers(CLI::App& app, const std::string& name, std::vector<std::int32_t>& numbers,
                         std::int32_t least, std::int32_t most, const std::string& description);
// The same of words, "7:1.3,9:2".
CLI::Option* add_words(CLI::App& app, const std::string& name, std::vector<std::string>& words,
                       const std::string& form, const std::string& description);

}  // namespace hyperrun
