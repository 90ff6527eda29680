#include "runtime/device/checkpoint_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "runtime/model/checkpoint/files.h"

namespace hyperrun {
namespace {

constexpr std::string_view kStep = "step-";

}  // namespace

std::string checkpoint_name(std::int64_t step) { return fmt::format("{}{:06}", kStep, step); }

std::int64_t saved_step(const std::filesystem::path& checkpoint) {
  const std::string name = checkpoint.filename();
  return name.starts_with(kStep) ? std::atoll(name.c_str() + kStep.size()) : -1;
}

std::string not_saved(const std::filesystem::path& checkpoint, const std::string& cause) {
  return fmt::format("{}: not saved, the run goes on: {}", checkpoint.string(), cause);
}

std::vector<std::int64_t> superfluous(std::vector<std::int64_t> steps, const KeptCheckpoints& kept) {
  if (kept.last <= 0) return {};
  std::ranges::sort(steps);
  steps.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, std::ssize(steps) - kept.last)));
  if (kept.every > 0) std::erase_if(steps, [&](std::int64_t step) { return step % kept.every == 0; });
  return steps;
}

void remove_superfluous(const std::filesystem::path& folder, const KeptCheckpoints& kept) {
  std::vector<std::int64_t> steps;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone))
    if (const std::int64_t step = saved_step(entry.path()); step >= 0) steps.push_back(step);
  for (const std::int64_t step : superfluous(std::move(steps), kept))
    remove_directory(folder / checkpoint_name(step));
}

}  // namespace hyperrun
