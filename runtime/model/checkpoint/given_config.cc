#include "runtime/model/checkpoint/given_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/quantization.h"

namespace hyperrun {
namespace {

using Document = nlohmann::ordered_json;

// Brings the fields by which `now` differs from `was` into `document`. Both are in our own form, so that a
// difference is one of meaning.
void lay_over(Document& document, const Document& was, const Document& now) {
  for (const auto& [field, value] : now.items())
    if (!was.contains(field) || was.at(field) != value) document[field] = value;
  for (const auto& [field, value] : was.items())
    if (!now.contains(field)) document.erase(field);
}

void set_dtype(Document& document, DType dtype) {
  const char* field = document.contains("dtype") ? "dtype" : "torch_dtype";
  document[field] = dtype == DType::kBF16 ? "bfloat16" : "float32";
}

}  // namespace

std::string to_config_json(HfConfig config, const std::filesystem::path& given) {
  const std::string text = read_file(given, Code::kBadCheckpoint);
  HfConfig before = read_config(given);
  config.model.sequence = std::max(config.model.sequence, before.model.sequence);
  const DType dtype = config.dtype, dtype_before = before.dtype;
  config.dtype = before.dtype = DType::kF32;  // set below, where the file may have another name for it
  const Document original = Document::parse(text);
  Document document = original;
  lay_over(document, Document::parse(to_config_json(before)), Document::parse(to_config_json(config)));
  document.erase(kQuantization);
  if (dtype != dtype_before) set_dtype(document, dtype);
  return document == original ? text : document.dump(2) + (text.ends_with('\n') ? "\n" : "");
}

}  // namespace hyperrun
