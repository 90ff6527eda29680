#include "runtime/forecast/role_words.h"

namespace hyperrun {
namespace {

// "layers 0 to 3, 8 to 11" of the stages on a device.
std::string layers_text(const PipelineSpec& pipeline, int device) {
  std::string text;
  int first = 0;
  for (const PipelineSpec::Stage& stage : pipeline.stages) {
    const int last = first + stage.layers - 1;
    if (stage.device == device && last >= first)
      text += (text.empty() ? "layers " : ", ") + std::to_string(first) +
              (last > first ? " to " + std::to_string(last) : "");
    first = last + 1;
  }
  return text.empty() ? "no layers" : text;
}

}  // namespace

std::string role_words(const Job& job, std::size_t role) {
  const PipelineSpec& pipeline = job.parallel.pipeline;
  return pipeline.axis + " " + std::to_string(role) + " (" + layers_text(pipeline, static_cast<int>(role)) +
         ")";
}

}  // namespace hyperrun
