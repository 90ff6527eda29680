#include "runtime/device/tensor_parts.h"

#include <algorithm>
#include <cstring>

namespace hyperrun {

std::vector<int> owners(const StateTensor& t, const Plan& plan, std::size_t role) {
  AxisList split;
  for (const AxisList& axes : t.layout.dims) split.append(axes);
  return plan.mesh.group(plan.mesh.group(0, plan.role_axes)[role], split);
}

namespace {

// Calls `visit` with each run of bytes [from, from + bytes) of the device's part.
template <class Visit>
void visit_runs(const StateTensor& t, const Mesh& mesh, int device, std::int64_t from, std::int64_t bytes,
                Visit visit) {
  const std::vector<std::int64_t> local = local_shape(t.shape, t.layout, mesh);
  // Dimensions from `inner` on are held whole, so that one run spans them and the part of the dimension
  // before.
  std::size_t inner = t.shape.size();
  while (inner > 0 && local[inner - 1] == t.shape[inner - 1]) --inner;
  std::int64_t run = size_of(t.dtype);
  for (std::size_t d = inner == 0 ? 0 : inner - 1; d < local.size(); ++d) run *= local[d];

  for (std::int64_t at = from; at < from + bytes;) {
    std::int64_t index = at / run, offset = 0, stride = size_of(t.dtype);
    for (std::size_t d = t.shape.size(); d-- > 0;) {
      const bool in_run = inner == 0 || d >= inner - 1;
      const std::int64_t i = in_run ? 0 : index % local[d];
      if (!in_run) index /= local[d];
      offset += (i + mesh.index(device, t.layout.dims[d]) * local[d]) * stride;
      stride *= t.shape[d];
    }
    const std::int64_t skipped = at % run;
    const std::int64_t n = std::min(run - skipped, from + bytes - at);
    visit(PartRun{at, offset + skipped, n});
    at += n;
  }
}

}  // namespace

std::vector<PartRun> part_runs(const StateTensor& t, const Mesh& mesh, int device) {
  std::vector<PartRun> runs;
  visit_runs(t, mesh, device, 0, t.bytes.value, [&](const PartRun& run) { runs.push_back(run); });
  return runs;
}

void copy_part(const StateTensor& t, const Mesh& mesh, int device, std::int64_t from, std::int64_t bytes,
               std::byte* whole, std::byte* part, PartCopy direction) {
  visit_runs(t, mesh, device, from, bytes, [&](const PartRun& run) {
    std::byte* in_whole = whole + run.whole;
    std::byte* in_part = part + (run.part - from);
    if (direction == PartCopy::kIntoWhole)
      std::memcpy(in_whole, in_part, static_cast<std::size_t>(run.bytes));
    else
      std::memcpy(in_part, in_whole, static_cast<std::size_t>(run.bytes));
  });
}

}  // namespace hyperrun
