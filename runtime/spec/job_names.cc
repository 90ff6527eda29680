#include "runtime/spec/job_names.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "runtime/base/misspelt.h"
#include "runtime/spec/other_words.h"

namespace hyperrun {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// The first field of the schema for which the predicate holds, or null.
const FieldDescriptor* find_field(const FileDescriptor* file,
                                  const std::function<bool(const FieldDescriptor*)>& wanted) {
  for (int m = 0; m < file->message_type_count(); ++m) {
    const Descriptor* block = file->message_type(m);
    for (int f = 0; f < block->field_count(); ++f)
      if (wanted(block->field(f))) return block->field(f);
  }
  return nullptr;
}

}  // namespace

std::vector<std::string_view> field_names(const Descriptor* block) {
  std::vector<std::string_view> names;
  names.reserve(static_cast<std::size_t>(block->field_count()));
  for (int f = 0; f < block->field_count(); ++f) names.emplace_back(block->field(f)->name());
  return names;
}

std::string block_title(const Descriptor* block) {
  const auto holds = [&](const FieldDescriptor* f) { return f->message_type() == block; };
  const FieldDescriptor* holder = find_field(block->file(), holds);
  if (holder == nullptr)
    return block->name() == "Profile" ? "the profile" : block->name() == "Faults" ? "the file" : "the job";
  const bool only = find_field(block->file(), [&](const FieldDescriptor* f) {
                      return holds(f) && f->name() != holder->name();
                    }) == nullptr;
  if (only) return "\"" + holder->name() + "\"";
  constexpr std::string_view kPrefix = "Profile";
  std::string kind = block->name();
  if (kind.starts_with(kPrefix)) kind.erase(0, kPrefix.size());
  kind[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(kind[0])));
  return (std::string_view("aeiou").find(kind[0]) == std::string_view::npos ? "a " : "an ") + kind;
}

std::string suggest_field(std::string_view written, const Descriptor* block) {
  if (std::string known = suggest_for_other_word(written, block); !known.empty()) return known;
  // A slip of one letter is likelier than a field in the wrong place, and that likelier than two slips.
  const std::string_view meant = most_alike(written, field_names(block));
  const bool slip = !meant.empty() && edit_distance(written, meant) == 1;
  const FieldDescriptor* elsewhere =
      slip ? nullptr
           : find_field(block->file(), [&](const FieldDescriptor* f) { return f->name() == written; });
  if (elsewhere != nullptr) {
    std::string home = block_title(elsewhere->containing_type());
    return "\"" + std::string(written) + "\" belongs in " + home;
  }
  if (!meant.empty()) return "did you mean \"" + std::string(meant) + "\"?";
  return "remove it";
}

std::string suggest_value(std::string_view written, const std::vector<std::string_view>& legal,
                          const Descriptor* block) {
  std::string_view meant = value_of_other_word(written);
  if (std::ranges::find(legal, meant) == legal.end()) {
    if (std::string known = suggest_for_other_word(written, block); !known.empty()) return known;
    meant = most_alike(written, legal);
  }
  return meant.empty() ? "choose one of them" : "did you mean \"" + std::string(meant) + "\"?";
}

}  // namespace hyperrun
