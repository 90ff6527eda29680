#include "runtime/run/results.h"

#include <fmt/core.h>

#include <string>

#include "runtime/base/error.h"
#include "runtime/spec/stats_io.h"

namespace hyperrun {

double output(std::span<const tasks::InvocationDone> results, const char* name) {
  for (const tasks::InvocationDone& r : results)
    if (const auto found = r.outputs.find(name); found != r.outputs.end()) return found->second;
  HR_CHECK(false, name);
  return 0;
}

std::vector<std::vector<OutputPart>> parts_of(std::span<const tasks::InvocationDone> results) {
  std::vector<std::vector<OutputPart>> parts;
  for (const tasks::InvocationDone& r : results) parts.push_back(output_parts_from_bytes(r.data));
  return parts;
}

std::vector<InvocationStats> stats_of(std::span<const tasks::InvocationDone> results) {
  std::vector<InvocationStats> stats;
  for (const tasks::InvocationDone& r : results)
    stats.push_back(stats_from_bytes(r.report, fmt::format("device {}", stats.size())));
  return stats;
}

}  // namespace hyperrun
