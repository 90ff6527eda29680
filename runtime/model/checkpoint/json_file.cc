#include "runtime/model/checkpoint/json_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/model/checkpoint/files.h"

namespace hyperrun {

using nlohmann::json;

namespace {

// No file of ours nests deeper than 5; code that walks a value recursively must not meet a million.
constexpr int kMaxDepth = 32;

}  // namespace

json parse_json(std::string_view text, const std::string& place) try {
  std::set<std::string> keys;
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw Error(Code::kBadCheckpoint, "nested too deeply").at(place);
    if (event != json::parse_event_t::key || depth != 1) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (!keys.insert(key).second) throw Error(Code::kBadCheckpoint, "\"" + key + "\" occurs twice").at(place);
    return true;
  };
  return json::parse(text, check);
} catch (const json::parse_error& e) {
  const std::string_view before = text.substr(0, std::min(text.size(), e.byte > 0 ? e.byte - 1 : 0));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  throw Error(Code::kBadCheckpoint,
              fmt::format("not valid JSON{} (line {}, column {})",
                          e.byte > text.size() ? ", it ends too early" : "", line, column))
      .at(place);
} catch (const json::exception&) {
  throw Error(Code::kBadCheckpoint, "not valid JSON").at(place);
}

json read_json(const std::filesystem::path& path) {
  return parse_json(read_file(path, Code::kBadCheckpoint), path.string());
}

JsonFields::JsonFields(const json& object, std::string place) : object_(object), place_(std::move(place)) {
  if (!object_.is_object()) throw Error(Code::kBadCheckpoint, "must be a JSON object").at(place_);
}

const json* JsonFields::find(const char* field) const {
  const auto it = object_.find(field);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const json& JsonFields::required(const char* field) const {
  const json* value = find(field);
  if (value == nullptr) throw error(field, "the field is missing");
  return *value;
}

std::string JsonFields::string(const char* field, const char* otherwise) const {
  const json* value = find(field);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) throw error(field, "must be a string");
  return value->get<std::string>();
}

bool JsonFields::boolean(const char* field, bool otherwise) const {
  const json* value = find(field);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) throw error(field, "must be true or false");
  return value->get<bool>();
}

double JsonFields::number(const char* field, double otherwise) const {
  const json* value = find(field);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) throw error(field, "must be a number");
  return value->get<double>();
}

std::int64_t JsonFields::integer(const char* field) const {
  const json& value = required(field);
  // A number beyond int64 is kept as unsigned and would turn negative.
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0))
    throw error(field, "must be an integer");
  return value.get<std::int64_t>();
}

std::uint64_t JsonFields::natural(const char* field) const {
  const json& value = required(field);
  if (!value.is_number_unsigned()) throw error(field, "must be an integer, 0 or more");
  return value.get<std::uint64_t>();
}

std::int64_t JsonFields::integer(const char* field, std::int64_t otherwise) const {
  return find(field) == nullptr ? otherwise : integer(field);
}

Error JsonFields::error(const char* field, std::string cause) const {
  return Error(Code::kBadCheckpoint, std::move(cause)).at(place_ + ": " + field);
}

}  // namespace hyperrun
