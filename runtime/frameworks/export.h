// Says a job in the terms of another framework, as text that one pastes.
#pragma once

#include <string>
#include <vector>

#include "runtime/frameworks/framework.h"
#include "runtime/ir/job.h"

namespace hyperrun::frameworks {

struct ExportedRun {
  std::vector<std::string> cannot;  // what the framework cannot say; empty: it can say all
  std::string text;                 // an argument list, TOML, JSON or YAML
  std::string remark;               // what it needs besides; may be empty
};

// `job` must have all defaults. The text is there only if the framework can say all.
ExportedRun export_run(const Job& job, const Framework& framework);

}  // namespace hyperrun::frameworks
