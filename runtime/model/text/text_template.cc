#include "runtime/model/text/text_template.h"

#include <array>
#include <memory>

#include "runtime/model/text/vocabulary.h"

namespace hyperrun {
namespace {

using nlohmann::json;
using Part = std::unique_ptr<TextTemplate>;

constexpr const char* kLegalTemplate = "special tokens and once the sequence A";

std::int32_t checked_id(const PipelineStep& step, const char* field, const json& id) {
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= Vocabulary::kMostTokens)
    throw step.fields().error(field, id.dump() + " is no id of a token");
  return id.get<std::int32_t>();
}

// The name of what stands in a template: {"SpecialToken": {"id": NAME}} or {"Sequence": {"id": NAME}}; empty
// when it is not of this kind.
std::string name_of(const json& entry, const char* kind) {
  if (!entry.is_object() || entry.size() != 1 || !entry.contains(kind)) return "";
  const json& inner = entry[kind];
  if (!inner.is_object() || !inner.contains("id") || !inner["id"].is_string()) return "";
  return inner["id"].get<std::string>();
}

// Appends the ids of a special token, which the step's own table names.
void append_ids(const PipelineStep& step, const std::string& name, std::vector<std::int32_t>& ids) {
  const json& table = step.fields().required("special_tokens");
  const json::json_pointer list("/ids");
  if (!table.is_object() || !table.contains(name) || !table[name].is_object() ||
      !table[name].contains(list) || !table[name][list].is_array())
    throw step.fields().error("special_tokens", "\"" + name + "\" has no ids");
  for (const json& id : table[name][list]) ids.push_back(checked_id(step, "special_tokens", id));
}

Part read_template(const PipelineStep& step) {
  step.allow({"single", "pair", "special_tokens"});
  const json& single = step.fields().required("single");
  if (!single.is_array()) throw step.fields().error("single", "must be a list");
  auto result = std::make_unique<TextTemplate>();
  bool has_text = false;
  for (const json& entry : single) {
    const std::string special = name_of(entry, "SpecialToken");
    if (!special.empty()) {
      append_ids(step, special, has_text ? result->after : result->before);
      continue;
    }
    step.refuse_if(has_text || name_of(entry, "Sequence") != "A", "single", kLegalTemplate);
    has_text = true;
  }
  step.refuse_if(!has_text, "single", kLegalTemplate);
  return result;
}

// Changes places in the text that tokens come from, no ids.
Part read_byte_level(const PipelineStep& step) {
  step.allow({"add_prefix_space", "trim_offsets", "use_regex"});
  return std::make_unique<TextTemplate>();
}

// Reads a field [TOKEN, ID].
std::int32_t read_pair(const PipelineStep& step, const char* field) {
  const json& pair = step.fields().required(field);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string())
    throw step.fields().error(field, "must be a token and its id");
  return checked_id(step, field, pair[1]);
}

Part read_bert(const PipelineStep& step) {
  step.allow({"sep", "cls", "trim_offsets", "add_prefix_space"});
  return std::make_unique<TextTemplate>(TextTemplate{{read_pair(step, "cls")}, {read_pair(step, "sep")}});
}

// Each processor adds its tokens around those of the ones before.
Part read_sequence(const PipelineStep& step) {
  step.allow({"processors"});
  auto result = std::make_unique<TextTemplate>();
  for (const PipelineStep& inner : step.steps("processors")) {
    const TextTemplate added = read_post_processor(inner);
    result->before.insert(result->before.begin(), added.before.begin(), added.before.end());
    result->after.insert(result->after.end(), added.after.begin(), added.after.end());
  }
  return result;
}

constexpr auto kReaders = std::to_array<StepReader<TextTemplate>>({
    {"ByteLevel", read_byte_level},
    {"TemplateProcessing", read_template},
    {"RobertaProcessing", read_bert},
    {"BertProcessing", read_bert},
    {"Sequence", read_sequence},
});

}  // namespace

TextTemplate read_post_processor(const PipelineStep& step) {
  return *read_step<TextTemplate>(step, kReaders);
}

}  // namespace hyperrun
