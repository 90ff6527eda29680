#include "runtime/spec/job_source.h"

#include <fmt/core.h>

#include "proto/job.pb.h"

namespace hyperrun {
namespace {

// The path of the enclosing block: "a.b[2]" -> "a.b" -> "a" -> "".
std::string_view enclosing(std::string_view field) {
  std::size_t cut = field.find_last_of(".[");
  return cut == std::string_view::npos ? std::string_view() : field.substr(0, cut);
}

bool binary(const JobSource& source) {
  return !source.fields.empty() && source.fields.begin()->second == Position{};
}

}  // namespace

std::string JobSource::place(std::string_view field) const {
  if (const auto found = fields.find(field); found != fields.end() && !found->second.file.empty())
    return fmt::format("{}:{}:{}", found->second.file, found->second.line, found->second.column);
  if (binary(*this)) return field.empty() ? path : path + ": " + std::string(field);
  for (std::string_view at = field; !at.empty(); at = enclosing(at)) {
    auto found = fields.find(at);
    if (found == fields.end()) continue;
    const Position& p = found->second;
    return fmt::format("{}:{}:{}", p.file.empty() ? path : p.file, p.line, p.column);
  }
  return path;
}

Error at_job_line(Error error, const JobSource& source) {
  std::string_view place = error.place();
  if (place.starts_with("preset ")) place = "parallel.presets";  // the origin of its rules
  const std::string block(place.substr(0, place.find_first_of(".[")));
  if (const auto* field = proto::Job::descriptor()->FindFieldByName(block);
      field == nullptr || field->message_type() == nullptr)
    return error;
  error.at(source.place(place));
  return error;
}

}  // namespace hyperrun
