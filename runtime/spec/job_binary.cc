#include <fmt/core.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>

#include "runtime/base/joined.h"
#include "runtime/spec/job_message.h"
#include "runtime/spec/job_names.h"

namespace hyperrun {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownField;

bool is_control(char c) {
  auto u = static_cast<unsigned char>(c);
  return (u < 0x20 && c != '\t' && c != '\n' && c != '\v' && c != '\f' && c != '\r') || u == 0x7f;
}

Error unknown_number(const Message& block, const UnknownField& unknown, const std::string& place) {
  const auto* type = block.GetDescriptor();
  std::string number = std::to_string(unknown.number());
  if (const FieldDescriptor* known = type->FindFieldByNumber(unknown.number()))
    return Error(Code::kBadValue,
                 "field " + number + ", \"" + known->name() + "\", holds another type of value")
        .at(place)
        .legal(known->type_name())
        .fix("write the job with proto/job.proto of this version");
  return Error(Code::kUnknownField, block_title(type) + " has no field number " + number)
      .at(place)
      .legal(joined(field_names(type)))
      .fix("write the job with proto/job.proto of this version");
}

// Records every field that is set, and reports what the schema does not know.
void walk(const Message& block, const std::string& prefix, JobSource& source, std::vector<Error>& errors) {
  const auto* reflection = block.GetReflection();
  const auto& unknown = reflection->GetUnknownFields(block);
  std::string place = prefix.empty() ? source.path : source.path + ": " + prefix;
  for (int i = 0; i < unknown.field_count(); ++i)
    errors.push_back(unknown_number(block, unknown.field(i), place));

  std::vector<const FieldDescriptor*> set;
  reflection->ListFields(block, &set);
  for (const FieldDescriptor* field : set) {
    std::string path = prefix.empty() ? field->name() : prefix + "." + field->name();
    source.fields[path] = {};
    bool nested = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!field->is_repeated()) {
      if (nested) walk(reflection->GetMessage(block, field), path, source, errors);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(block, field); ++i) {
      std::string element = fmt::format("{}[{}]", path, i);
      source.fields[element] = {};
      if (nested) walk(reflection->GetRepeatedMessage(block, field, i), element, source, errors);
    }
  }
}

}  // namespace

bool is_binary_job(std::string_view content) {
  return std::any_of(content.begin(), content.end(), is_control);
}

std::vector<Error> parse_binary_job(std::string_view content, proto::Job& message, JobSource& source) {
  google::protobuf::LogSilencer quiet;
  std::vector<Error> errors;
  if (!message.ParseFromArray(content.data(), static_cast<int>(content.size()))) {
    auto control = std::find_if(content.begin(), content.end(), is_control) - content.begin();
    errors.push_back(
        Error(Code::kSyntax,
              fmt::format(
                  "neither a text job (control character at byte {}) nor a binary one (cut short or damaged)",
                  control))
            .at(source.path)
            .legal("text in UTF-8, or the binary form of hyperrun.proto.Job")
            .fix("write the file again"));
    return errors;
  }
  walk(message, "", source, errors);
  return errors;
}

}  // namespace hyperrun
