#include "runtime/spec/job_text_errors.h"

#include <fmt/core.h>

#include <initializer_list>

#include "proto/job.pb.h"
#include "proto/supernode.pb.h"
#include "runtime/base/joined.h"
#include "runtime/spec/job_legal.h"
#include "runtime/spec/job_names.h"

namespace hyperrun {
namespace {

using google::protobuf::Descriptor;

// Matches a message of the parser against its fixed parts, and holds the texts between them, shortened for
// messages.
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
    std::string shortened(text.substr(0, kMost));
    if (text.size() > kMost) shortened += "...";
    return shortened;
  }

  std::vector<std::string> between_;
  bool matches_ = false;
};

// The error of a value that has the wrong kind for the field of that name.
Error wrong_value(const std::string& written, std::string_view field_name) {
  std::string legal = legal_values(field_name);
  if (legal.empty() && proto::Figure::descriptor()->FindFieldByName(std::string(field_name)) != nullptr)
    legal = kLegalText;
  std::string subject = legal.empty() ? "the value" : in_quotes(field_name);
  std::string value = written.empty() ? "left empty" : written == "-" ? "negative" : written;
  Error error(Code::kBadValue, subject + " cannot be " + value);
  error.legal(legal);
  if (legal == kLegalText && !written.empty())
    error.fix("write it in quotes: " + std::string(field_name) + ": " + in_quotes(written));
  else
    error.fix(legal.find('"') == std::string::npos ? "choose a legal value" : "write it in quotes, as above");
  return error;
}

Error unknown_field(const std::string& type_name, const std::string& name) {
  const Descriptor* block =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(type_name);
  if (block == nullptr) block = proto::Job::descriptor();
  return Error(Code::kUnknownField, block_title(block) + " has no field \"" + name + "\"")
      .legal(joined(field_names(block)))
      .fix(suggest_field(name, block));
}

constexpr const char* kShape = "NAME: VALUE for a field, NAME { ... } for a block, # for a comment";

std::string without_stop(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Error syntax(const std::string& message) {
  if (message == "String literals cannot cross line boundaries.")
    return Error(Code::kSyntax, "the text has no closing quote on its line")
        .legal("text in quotes, on one line: \"...\"")
        .fix("close it with \"; two texts that follow each other are one");
  Match m(message, {"Expected identifier, got: ", ""});
  if (!m)
    return Error(Code::kSyntax, without_stop(message.substr(0, 200))).legal(kShape).fix("correct the line");
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
  error.at(fmt::format("{}:{}:{}", path_, p.line, p.column));
  errors_.push_back(std::move(error));
}

void TextErrors::AddError(int line, int column, const std::string& message) {
  if (failed_) return;
  failed_ = true;
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
    return add(Error(Code::kSyntax, "\"" + m[0] + "\" is given twice")
                   .legal("each field once")
                   .fix("keep one of them"),
               lines_.word_before(m[0], at));
  add(syntax(message), at);
}

void TextErrors::AddWarning(int line, int column, const std::string& message) {
  if (failed_) return;
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
