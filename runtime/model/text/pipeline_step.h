// One step of a tokenizer.json: an object with a "type" and that type's fields. What a step has and we cannot
// compute is refused with its place; nothing is ignored.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/text/regex.h"

namespace hyperrun {

class PipelineStep {
 public:
  // kBadCheckpoint at `place` unless `object` is an object.
  PipelineStep(const nlohmann::json& object, std::string place);

  const JsonFields& fields() const { return fields_; }
  const std::string& place() const { return place_; }
  std::string place(const char* field) const { return place_ + ": " + field; }
  std::string type() const { return fields_.string("type", ""); }

  // Refuses every field but "type" and these.
  void allow(std::initializer_list<std::string_view> fields) const;
  void refuse_if(bool condition, const char* field, const std::string& legal) const;

  // A field that must be there.
  std::string text(const char* field) const;
  // A field with one character.
  std::string character(const char* field, const char* otherwise) const;
  // {"String": text} or {"Regex": text}.
  Regex pattern(const char* field) const;
  // The steps of a Sequence.
  std::vector<PipelineStep> steps(const char* field) const;

 private:
  const nlohmann::json& object_;
  JsonFields fields_;
  std::string place_;
};

// How a type of step is read.
template <class Part>
struct StepReader {
  const char* type;
  std::unique_ptr<Part> (*read)(const PipelineStep& step);
};

// Refuses a type that is none of `legal`.
[[noreturn]] void refuse_type(const PipelineStep& step, const std::vector<std::string>& legal);

// Reads a step by the row of its type.
template <class Part>
std::unique_ptr<Part> read_step(const PipelineStep& step, std::span<const StepReader<Part>> readers) {
  std::vector<std::string> types;
  for (const StepReader<Part>& reader : readers) {
    if (step.type() == reader.type) return reader.read(step);
    types.emplace_back(reader.type);
  }
  refuse_type(step, types);
}

}  // namespace hyperrun
