#include "runtime/spec/job_text_errors.h"

#include <initializer_list>

#include "proto/job.pb.h"
#include "runtime/spec/job_names.h"

namespace hyperrun {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Matches a message of the parser against its fixed parts; holds what stands between them, shortened to
// what a message can bear.
class Match {
 public:
  Match(std::string_view message, std::initializer_list<std::string_view> fixed) {
    const std::string_view* part = fixed.begin();
    if (!message.starts_with(*part)) return;
    message.remove_prefix(part->size());
    for (++part; part != fixed.end(); ++part) {
      std::size_t end = part->empty() ? message.size() : message.find(*part);
      if (end == std::string_view::npos) return;
      between_.push_back(shorten(message.substr(0, end)));
      message.remove_prefix(end + part->size());
    }
    matches_ = message.empty();
  }

  explicit operator bool() const { return matches_; }
  const std::string& operator[](std::size_t i) const { return between_[i]; }

 private:
  static std::string shorten(std::string_view text) {
    constexpr std::size_t kMost = 60;
    return text.size() <= kMost ? std::string(text) : std::string(text.substr(0, kMost)) + "...";
  }

  std::vector<std::string> between_;
  bool matches_ = false;
};

const FieldDescriptor* field_named(std::string_view name) {
  const auto* file = proto::Job::descriptor()->file();
  for (int m = 0; m < file->message_type_count(); ++m)
    if (const auto* field = file->message_type(m)->FindFieldByName(std::string(name))) return field;
  return nullptr;
}

std::string enum_values(const FieldDescriptor* field) {
  std::vector<std::string_view> names;
  for (int i = 0; i < field->enum_type()->value_count(); ++i)
    names.emplace_back(field->enum_type()->value(i)->name());
  return join(names);
}

std::string legal_values(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return "true, false";
    case FieldDescriptor::CPPTYPE_STRING: return "text in quotes";
    case FieldDescriptor::CPPTYPE_DOUBLE: return "a number, such as 0.001 or 1e-3";
    case FieldDescriptor::CPPTYPE_ENUM: return enum_values(&field);
    case FieldDescriptor::CPPTYPE_MESSAGE: return "a block: " + field.name() + " { ... }";
    case FieldDescriptor::CPPTYPE_INT32: return "a whole number from -2147483648 to 2147483647";
    default: return "a whole number from 0 to 18446744073709551615";
  }
}

// A value of the wrong kind: `written` stands for the field whose value is at `offset`.
Error wrong_value(const std::string& written, std::string_view field_name) {
  const FieldDescriptor* field = field_named(field_name);
  std::string subject = field == nullptr ? "the value" : "\"" + std::string(field_name) + "\"";
  Error error(Code::kBadValue, subject + " cannot be " + (written.empty() ? "left empty" : written));
  if (field == nullptr) return error;
  error.legal(legal_values(*field));
  bool unquoted = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !written.empty();
  if (unquoted) error.fix("write it in quotes: " + std::string(field_name) + ": \"" + written + "\"");
  return error;
}

Error unknown_field(const std::string& type_name, const std::string& name) {
  const auto* file = proto::Job::descriptor()->file();
  const Descriptor* block = file->FindMessageTypeByName(type_name.substr(type_name.rfind('.') + 1));
  if (block == nullptr) block = proto::Job::descriptor();
  return Error(Code::kUnknownField, block_title(block) + " has no field \"" + name + "\"")
      .legal(join(field_names(block)))
      .fix(suggest_field(name, block));
}

constexpr const char* kShape = "NAME: VALUE for a field, NAME { ... } for a block, # for a comment";

Error syntax(const std::string& message) {
  Match m(message, {"Expected identifier, got: ", ""});
  if (!m) return Error(Code::kSyntax, message.substr(0, 200)).legal(kShape).fix("correct the line");
  if (m[0].empty())
    return Error(Code::kSyntax, "the file ends inside a block").legal(kShape).fix("close the block with }");
  if (m[0] == "}") return Error(Code::kSyntax, "this } closes no block").legal(kShape).fix("remove it");
  return Error(Code::kSyntax, "a field's name must stand here, not " + m[0])
      .legal(kShape)
      .fix("correct the line");
}

}  // namespace

void TextErrors::add(Error error, std::size_t offset) {
  Position p = lines_.position(offset);
  error.at(path_ + ":" + std::to_string(p.line) + ":" + std::to_string(p.column));
  errors_.push_back(std::move(error));
}

void TextErrors::AddError(int line, int column, const std::string& message) {
  std::size_t at = lines_.offset(line, column);
  for (std::string_view kind : {"integer", "double", "string", "integer or identifier"})
    if (Match m(message, {"Expected " + std::string(kind) + ", got: ", ""}); m)
      return add(wrong_value(m[0], lines_.field_of_value(at)), at);
  if (Match m(message, {"Integer out of range (", ")"}); m)
    return add(wrong_value(m[0], lines_.field_of_value(at)), at);
  if (Match m(message, {"Invalid value for boolean field \"", "\". Value: \"", "\"."}); m)
    return add(wrong_value(m[1], m[0]), lines_.word_before(m[1], at));
  if (Match m(message, {"Unknown enumeration value of \"", "\" for field \"", "\"."}); m)
    return add(wrong_value(m[0], m[1]), lines_.word_before(m[0], at));
  if (Match m(message, {"Non-repeated field \"", "\" is specified multiple times."}); m)
    return add(Error(Code::kSyntax, "\"" + m[0] + "\" is given twice").fix("keep one of them"),
               lines_.word_before(m[0], at));
  add(syntax(message), at);
}

void TextErrors::AddWarning(int line, int column, const std::string& message) {
  std::size_t at = lines_.offset(line, column);
  if (Match m(message, {"Message type \"", "\" has no field named \"", "\"."}); m)
    return add(unknown_field(m[0], m[1]), lines_.word_before(m[1], at));
  if (Match m(message,
              {"Ignoring extension \"", "\" which is not defined or is not an extension of \"", "\"."});
      m)
    return add(unknown_field(m[1], m[0]), lines_.word_before(m[0], at));
  add(syntax(message), at);
}

}  // namespace hyperrun
