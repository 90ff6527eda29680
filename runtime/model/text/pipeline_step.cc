#include "runtime/model/text/pipeline_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/base/joined.h"
#include "runtime/base/utf8.h"

namespace hyperrun {

using nlohmann::json;

PipelineStep::PipelineStep(const json& object, std::string place)
    : object_(object), fields_(object, place), place_(std::move(place)) {}

void PipelineStep::allow(std::initializer_list<std::string_view> fields) const {
  for (const auto& [name, value] : object_.items())
    if (name != "type" && std::ranges::find(fields, name) == fields.end())
      throw fields_.error(name.c_str(), fmt::format("the field is not known for \"{}\"", type()))
          .legal(fields.size() == 0 ? "no field but type" : "type, " + joined(fields));
}

void PipelineStep::refuse_if(bool condition, const char* field, const std::string& legal) const {
  if (condition) throw fields_.error(field, "the setting is not supported").legal(legal);
}

std::string PipelineStep::text(const char* field) const {
  fields_.required(field);
  return fields_.string(field, "");
}

std::string PipelineStep::character(const char* field, const char* otherwise) const {
  std::string text = fields_.string(field, otherwise);
  if (text.empty() || char_at(text, 0).bytes != text.size())
    throw fields_.error(field, "\"" + text + "\" is not one character");
  return text;
}

Regex PipelineStep::pattern(const char* field) const {
  const json& value = fields_.required(field);
  if (value.is_object() && value.size() == 1 && value.begin().value().is_string()) {
    const std::string text = value.begin().value().get<std::string>();
    if (value.begin().key() == "String") return Regex::literal(text, place(field));
    if (value.begin().key() == "Regex") return Regex::oniguruma(text, place(field));
  }
  throw fields_.error(field, "must be a pattern").legal(R"({"String": TEXT} or {"Regex": PATTERN})");
}

std::vector<PipelineStep> PipelineStep::steps(const char* field) const {
  const json& list = fields_.required(field);
  if (!list.is_array()) throw fields_.error(field, "must be a list");
  std::vector<PipelineStep> steps;
  for (std::size_t i = 0; i < list.size(); ++i)
    steps.emplace_back(list[i], fmt::format("{}[{}]", place(field), i));
  return steps;
}

void refuse_type(const PipelineStep& step, const std::vector<std::string>& legal) {
  const std::string type = step.type();
  throw step.fields()
      .error("type", type.empty() ? "the field is missing" : fmt::format("\"{}\" is not supported", type))
      .legal(joined(legal));
}

}  // namespace hyperrun
