#include "runtime/forecast/describe_role.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

// The layers of all chunks on a device of the pipeline: "layers 0 to 3, 8 to 11".
std::string describe_layers(const PipelineSpec& pipeline, int device) {
  std::vector<std::string> runs;
  int first = 0;
  for (const PipelineSpec::Stage& stage : pipeline.stages) {
    const int last = first + stage.layers - 1;
    if (stage.device == device && last >= first)
      runs.push_back(last > first ? fmt::format("{} to {}", first, last) : fmt::format("{}", first));
    first = last + 1;
  }
  return runs.empty() ? "no layers" : "layers " + joined(runs);
}

}  // namespace

std::string describe_role(const Job& job, std::size_t role) {
  const PipelineSpec& pipeline = job.parallel.pipeline;
  return fmt::format("{} {} ({})", pipeline.axis, role, describe_layers(pipeline, static_cast<int>(role)));
}

}  // namespace hyperrun
