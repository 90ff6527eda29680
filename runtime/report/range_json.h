// The range of a simulated step as JSON, and back. Included by .cc files only.
#pragma once

#include "runtime/ir/step_range.h"
#include "runtime/report/json.h"

namespace hyperrun {

Json to_json(const StepRange& range);
// Throws Json::exception or kSyntax if a field is missing or of another kind.
StepRange range_from(const Json& json);

}  // namespace hyperrun
