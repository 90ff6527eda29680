// Helpers of this room's JSON writers. Included by .cc files only.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/units.h"

namespace hyperrun {

using Json = nlohmann::ordered_json;  // keys stay in the order of writing

// Dumps with two spaces a level and a newline at the end. Bytes of host names and paths that are no UTF-8 are
// replaced: a run does not fail at its end over a file name.
inline std::string dump_indented(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

// Puts a number. JSON has no NaN: such a number becomes null, and "not_finite" of the same object gives its
// value: "nan", "inf", "-inf".
inline void put_number(Json& object, std::string_view key, double value) {
  std::string k(key);
  if (std::isfinite(value)) {
    object[k] = value;
    return;
  }
  object[k] = nullptr;
  object["not_finite"][k] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// Gets such a number; nullopt if it is null without a value. Throws Json::exception if it is missing.
inline std::optional<double> get_number(const Json& object, const std::string& key) {
  const Json& value = object.at(key);
  if (!value.is_null()) return value.get<double>();
  auto flags = object.find("not_finite");
  if (flags == object.end() || !flags->contains(key)) return std::nullopt;
  auto text = flags->at(key).get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

// Gets a time, a number of bytes or a count, which is exact and never negative. Throws kSyntax, without a
// place; Json::exception if it is missing.
inline std::int64_t whole(const Json& object, const std::string& key) {
  const Json& value = object.at(key);
  const bool exact = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX
                                                : value.is_number_integer() && value.get<std::int64_t>() >= 0;
  if (!exact)
    throw Error(Code::kSyntax, "\"" + key + "\" is " + value.dump().substr(0, 40))
        .legal("a whole number, 0 or more");
  return value.get<std::int64_t>();
}

inline double seconds(Nanos t) { return static_cast<double>(t.value) / 1e9; }

}  // namespace hyperrun
