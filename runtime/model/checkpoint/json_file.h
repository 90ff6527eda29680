// Reads JSON from foreign files: every access checks, and an Error names the file and the field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun {

// Parses `text`; Error(kBadCheckpoint) at `place` with the parser's reason, also when a key of the
// object at the top occurs twice or values nest deeper than any of our formats.
nlohmann::json parse_json(std::string_view text, const std::string& place);
nlohmann::json read_json(const std::filesystem::path& path);

// A JSON object and where it comes from. Fields are asked for by name; a wrong type or an absent field
// that has no default is Error(kBadCheckpoint) at "PLACE: FIELD". null counts as absent.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string place);

  const nlohmann::json* find(const char* field) const;      // null when absent
  const nlohmann::json& required(const char* field) const;  // any type

  std::string string(const char* field, const char* otherwise) const;
  bool boolean(const char* field, bool otherwise) const;
  double number(const char* field, double otherwise) const;
  std::int64_t integer(const char* field) const;
  std::uint64_t natural(const char* field) const;
  std::int64_t integer(const char* field, std::int64_t otherwise) const;

  Error error(const char* field, std::string cause) const;

 private:
  const nlohmann::json& object_;
  std::string place_;
};

}  // namespace hyperrun
