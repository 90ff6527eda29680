// Reads whole numbers that a user has typed.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace hyperrun {

// True for digits, with or without a minus before them.
inline bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Reads `text` into `number` and returns "". If that fails, returns the cause of an error: "99999999999 is
// more than 2147483647".
template <class T>
std::string why_not_whole(std::string_view text, T least, T most, T& number) {
  const std::string name(text);
  if (!is_whole_number(text)) return "\"" + name + "\" is no whole number";
  T read{};
  const bool fits = std::from_chars(text.data(), text.data() + text.size(), read).ec == std::errc();
  const bool negative = text.front() == '-';
  if (fits ? read < least : negative) return name + " is less than " + std::to_string(least);
  if (!fits || read > most) return name + " is more than " + std::to_string(most);
  number = read;
  return "";
}

}  // namespace hyperrun
