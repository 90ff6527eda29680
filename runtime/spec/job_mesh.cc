#include "runtime/spec/job_mesh.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <span>

#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

constexpr std::size_t kMostShown = 12;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Appends each "dp 2 x tp 4" for the axes from `axis` on; stops when one more than is shown is found.
void spread(const std::vector<MeshAxis>& mesh, std::size_t axis, std::int64_t devices,
            const std::string& begun, std::vector<std::string>& found) {
  std::string start = begun + (axis == 0 ? "" : " x ") + mesh[axis].name + " ";
  if (axis + 1 == mesh.size()) {
    found.push_back(start + std::to_string(devices));
    return;
  }
  for (std::int64_t size : divisors(devices)) {
    spread(mesh, axis + 1, devices / size, start + std::to_string(size), found);
    if (found.size() > kMostShown) return;
  }
}

}  // namespace

bool legal_axis_name(const std::string& name) {
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '_';
  });
}

std::int64_t mesh_size(const std::vector<MeshAxis>& mesh) {
  std::int64_t product = 1;
  for (const MeshAxis& axis : mesh)
    if (__builtin_mul_overflow(product, axis.size, &product)) return std::numeric_limits<std::int64_t>::max();
  return product;
}

std::string list(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    bool cut = numbers.size() > kMostShown && i == kMostShown / 2;
    if (cut) i = numbers.size() - kMostShown / 2;
    text += (i == 0 ? "" : ", ") + (cut ? std::string("..., ") : std::string()) + std::to_string(numbers[i]);
  }
  return text;
}

std::string legal_meshes(const ParallelSpec& parallel, std::int64_t devices) {
  const std::vector<MeshAxis>& mesh = parallel.mesh;
  if (mesh.empty())
    return fmt::format("in parallel: mesh {{ name: \"dp\" size: {} }}{}", devices,
                       parallel.presets.empty() ? " presets: [\"dp\"]" : "");
  std::vector<std::string> found;
  spread(mesh, 0, devices, "", found);
  return joined(std::span(found).first(std::min(found.size(), kMostShown))) +
         (found.size() > kMostShown ? ", ..." : "");
}

std::string axis_names(const std::vector<MeshAxis>& mesh) {
  if (mesh.empty()) return "none: the mesh has no axes";
  std::vector<std::string> names;
  for (const MeshAxis& axis : mesh) names.push_back(axis.name);
  return joined(names);
}

}  // namespace hyperrun
