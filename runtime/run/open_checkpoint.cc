#include "runtime/run/open_checkpoint.h"

#include <cstdio>
#include <filesystem>

#include "runtime/device/checkpoint_folder.h"

namespace hyperrun {

std::string OpenCheckpoint::end(const std::string& run_directory) const {
  if (problem_.empty()) return state_;
  const auto path = std::filesystem::path(run_directory) / "checkpoints" / checkpoint_name(step_);
  std::fprintf(stderr, "warning: %s\n", not_saved(path, problem_).c_str());
  return {};
}

}  // namespace hyperrun
