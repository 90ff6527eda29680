// A folder of checkpoints: their names, and which of them stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hyperrun {

// "step-000400".
std::string checkpoint_name(std::int64_t step);

// The step in a checkpoint's name, -1 if it has none: "step-000400" has 400.
std::int64_t saved_step(const std::filesystem::path& checkpoint);

// The warning that a checkpoint could not be written, and the run goes on.
std::string not_saved(const std::filesystem::path& checkpoint, const std::string& cause);

// Which checkpoints stay: the last ones, and those after a multiple of so many steps.
struct KeptCheckpoints {
  std::int32_t last = 0;   // 0: all
  std::int32_t every = 0;  // 0: none but the last ones
};

// The steps whose checkpoints do not stay, ascending.
std::vector<std::int64_t> superfluous(std::vector<std::int64_t> steps, const KeptCheckpoints& kept);

// Removes the checkpoints in `folder` that do not stay. Throws kUnwritable.
void remove_superfluous(const std::filesystem::path& folder, const KeptCheckpoints& kept);

}  // namespace hyperrun
