#include "runtime/model/text/vocabulary_file.h"

#include <fmt/core.h>

namespace hyperrun {

Vocabulary read_vocabulary(const PipelineStep& step) {
  const nlohmann::json& object = step.fields().required("vocab");
  if (!object.is_object()) throw step.fields().error("vocab", "must be a JSON object");
  Vocabulary vocabulary;
  for (const auto& [token, id] : object.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= Vocabulary::kMostTokens)
      throw step.fields()
          .error("vocab", fmt::format("the id of \"{}\" is {}", token, id.dump()))
          .legal(fmt::format("0 to {}", Vocabulary::kMostTokens - 1));
    if (!vocabulary.add(token, id.get<std::int64_t>()))
      throw step.fields().error(
          "vocab", fmt::format("each id must occur once; \"{}\" has the id {} of \"{}\"", token, id.dump(),
                               vocabulary.token(id.get<std::int32_t>())));
  }
  return vocabulary;
}

}  // namespace hyperrun
