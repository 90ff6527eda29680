// The model of a configuration: from flags, from a config.json, or by its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/frameworks/launch.h"
#include "runtime/frameworks/reading.h"
#include "runtime/ir/job.h"

namespace hyperrun::frameworks {

// A published model by the name that it has on the hub ("meta-llama/Llama-3.1-8B-Instruct"), or in torchtitan
// ("llama3 8B"). Letters may be of either case, and the name may be a path that ends so. Its `sequence` is 0.
std::optional<ModelSpec> known_model(std::string_view name);
// torchtitan's name of a model that it has; empty: it has none such.
struct NamedModel {
  std::string_view name, flavor;
};
std::optional<NamedModel> torchtitan_name(const ModelSpec& model);
std::vector<std::string_view> known_models();

// The model of a configuration that only names it: that of --model, else a known one; `sequence` is the
// configuration's. Throws kMissingField with what to give.
ModelSpec model_by_name(Reading& reading, const std::string& name);

// The model that Megatron-LM's flags describe, on top of that of --model. `tensor`: devices that split the
// vocabulary, which is padded for them. Throws kMissingField where a size is missing.
ModelSpec model_of_flags(Reading& reading, std::int32_t tensor);

// The inverse, with the vocabulary as it is. `cannot` lists what no flag says.
void flags_of_model(const ModelSpec& model, Launch& launch, std::vector<std::string>& cannot);

}  // namespace hyperrun::frameworks
