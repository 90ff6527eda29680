#include "runtime/model/text/metaspace.h"

#include "runtime/model/text/spelling.h"

namespace hyperrun {
namespace {

Metaspace::Prepend read_scheme(const PipelineStep& step) {
  const bool adds = step.fields().boolean("add_prefix_space", true);
  const std::string scheme = step.fields().string("prepend_scheme", adds ? "always" : "never");
  step.refuse_if(!adds && scheme != "never", "add_prefix_space", "true, with this prepend_scheme");
  if (scheme == "never") return Metaspace::Prepend::kNever;
  if (scheme == "first") return Metaspace::Prepend::kFirst;
  step.refuse_if(scheme != "always", "prepend_scheme", "always, first, never");
  return Metaspace::Prepend::kAlways;
}

}  // namespace

Metaspace read_metaspace(const PipelineStep& step) {
  step.allow({"replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  return {step.character("replacement", kBlankMark.data()), read_scheme(step),
          step.fields().boolean("split", true)};
}

}  // namespace hyperrun
