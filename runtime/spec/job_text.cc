#include <fmt/core.h>
#include <google/protobuf/text_format.h>

#include "runtime/spec/job_message.h"
#include "runtime/spec/job_text_errors.h"
#include "runtime/spec/job_text_lines.h"

namespace hyperrun {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
using Tree = TextFormat::ParseInfoTree;

constexpr int kDeepest = 50;  // deepest nesting of blocks; the schema has four levels

// Fills source.fields from protobuf's tree of locations.
class Places {
 public:
  Places(const TextLines& lines, JobSource& source) : lines_(lines), source_(source) {}

  void record(const Message& block, const Tree& tree, const std::string& prefix) {
    const auto* reflection = block.GetReflection();
    std::vector<const FieldDescriptor*> set;
    reflection->ListFields(block, &set);
    for (const FieldDescriptor* field : set) {
      std::string path = prefix.empty() ? field->name() : prefix + "." + field->name();
      if (field->is_repeated()) {
        record_elements(block, field, tree, path);
        continue;
      }
      source_.fields[path] = lines_.position(offset(tree.GetLocation(field, -1), 0));
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        record_nested(reflection->GetMessage(block, field), tree, field, -1, path);
    }
  }

 private:
  // The tree has only one location for a list ["a", "b"], so its strings are looked up in the text.
  void record_elements(const Message& block, const FieldDescriptor* field, const Tree& tree,
                       const std::string& path) {
    const auto* reflection = block.GetReflection();
    bool texts = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    std::size_t at = offset(tree.GetLocation(field, 0), 0);
    source_.fields[path] = lines_.position(at);
    for (int i = 0; i < reflection->FieldSize(block, field); ++i) {
      std::string element = fmt::format("{}[{}]", path, i);
      if (texts) {
        std::string value = reflection->GetRepeatedString(block, field, i);
        std::size_t found = lines_.word_after("\"" + value + "\"", at);
        source_.fields[element] = lines_.position(found);
        at = found == at ? at : found + value.size() + 2;
      } else {
        at = offset(tree.GetLocation(field, i), at);
        source_.fields[element] = lines_.position(at);
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
          record_nested(reflection->GetRepeatedMessage(block, field, i), tree, field, i, element);
      }
    }
  }

  void record_nested(const Message& block, const Tree& tree, const FieldDescriptor* field, int index,
                     const std::string& path) {
    if (const Tree* nested = tree.GetTreeForNested(field, index)) record(block, *nested, path);
  }

  std::size_t offset(TextFormat::ParseLocation location, std::size_t otherwise) const {
    return location.line < 0 ? otherwise : lines_.offset(location.line, location.column);
  }

  const TextLines& lines_;
  JobSource& source_;
};

}  // namespace

std::vector<Error> parse_text(std::string_view content, Message& message, JobSource& source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  TextLines lines(content);
  TextErrors errors(lines, source.path);
  Tree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&tree);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kDeepest);
  bool parsed = parser.ParseFromString(std::string(content), &message);
  std::vector<Error> found = errors.take();
  HR_CHECK(parsed || !found.empty(), "the text parser fails without a word");
  Places(lines, source).record(message, tree, "");
  return found;
}

}  // namespace hyperrun
