#include "runtime/device/saved_runs.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (std::int64_t size : shape) n *= size;
  return n;
}

// True if the checkpoint's tensor lacks the last rows of ours, which are padding (Dim::padding).
bool has_padding(const StateTensor& t) {
  const auto& ours = t.shape;
  const auto& there = t.saved.shape;
  return t.saved.of == 0 && t.saved.slices == 1 && !ours.empty() && ours.size() == there.size() &&
         there[0] < ours[0] && std::equal(ours.begin() + 1, ours.end(), there.begin() + 1);
}

}  // namespace

std::vector<std::string> saved_names(const SavedAs& saved) {
  std::vector<std::string> names;
  for (std::int64_t slice = 0; slice < saved.slices; ++slice) {
    std::string name = saved.name;
    if (const std::size_t at = name.find('*'); at != std::string::npos)
      name.replace(at, 1, std::to_string(slice));
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<SavedRun> saved_runs(const StateTensor& t) {
  const SavedAs& saved = t.saved;
  const std::int64_t element = size_of(t.dtype), there = elements(saved.shape);
  if (has_padding(t)) return {{0, 0, 0, there * element}};
  const std::int64_t of = saved.of > 0 ? saved.of : there, rows = there / of;
  const std::int64_t run = elements(t.shape) / saved.slices / rows;
  HR_CHECK(run * rows * saved.slices == elements(t.shape) && saved.from + run <= of, t.name);
  std::vector<SavedRun> runs;
  for (std::int64_t slice = 0, ours = 0; slice < saved.slices; ++slice)
    for (std::int64_t row = 0; row < rows; ++row, ours += run)
      runs.push_back({static_cast<std::size_t>(slice), (row * of + saved.from) * element,
                      static_cast<std::size_t>(ours * element), run * element});
  return runs;
}

}  // namespace hyperrun
