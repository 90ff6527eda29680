// Included by .cc files only, as json.h is.
#pragma once

#include "runtime/report/json.h"
#include "runtime/report/report.h"

namespace hyperrun {

Json to_object(const PacedUse& paced);
PacedUse paced_from(const Json& object);  // throws Json::exception

}  // namespace hyperrun
