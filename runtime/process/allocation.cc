#include "runtime/process/allocation.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/process/host.h"

namespace hyperrun::process {
namespace {

// Reads a number at the text's start and removes it. 0: there is none.
std::int64_t take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return failed == std::errc() ? value : 0;
}

// The sum of "2(x3),1", which is 7.
std::int64_t sum_of_tasks(const std::string& per_node) {
  std::int64_t sum = 0;
  std::istringstream parts(per_node);
  for (std::string part; std::getline(parts, part, ',');) {
    std::string_view rest = part;
    const std::int64_t tasks = take_number(rest);
    std::int64_t nodes = 1;
    if (rest.starts_with("(x")) {
      rest.remove_prefix(2);
      nodes = take_number(rest);
    }
    sum += tasks * nodes;
  }
  return sum;
}

std::string text_of(const char* value) { return value != nullptr ? value : ""; }

// A name without its domain.
std::string first_label(const std::string& name) { return name.substr(0, name.find('.')); }

}  // namespace

std::optional<Allocation> slurm_allocation(const GetEnv& env, const std::string& host) {
  if (env("SLURM_JOB_ID") == nullptr || env("SLURM_JOB_NODELIST") == nullptr) return std::nullopt;
  Allocation a;
  a.nodes = text_of(env("SLURM_JOB_NODELIST"));
  const std::string count = text_of(env("SLURM_JOB_NUM_NODES"));
  std::string_view digits = count;
  if (const std::int64_t nodes = take_number(digits); nodes > 0)
    a.node_count = static_cast<std::int32_t>(nodes);
  a.tasks_per_node = text_of(env("SLURM_TASKS_PER_NODE"));
  a.tasks = sum_of_tasks(a.tasks_per_node);
  const std::string node = text_of(env("SLURMD_NODENAME"));
  a.this_host_alone = a.node_count == 1 && first_label(node.empty() ? host : node) == first_label(a.nodes);
  return a;
}

std::optional<Allocation> slurm_allocation() {
  return slurm_allocation([](const char* name) { return std::getenv(name); }, host_name());
}

void require_tasks(const Allocation& a, std::int32_t ranks) {
  if (a.node_count == 1 || a.tasks == 0 || a.tasks >= ranks) return;
  throw Error(Code::kTooFewRanks, fmt::format("the allocation has {} tasks ({} on {}), the run has {} ranks",
                                              a.tasks, a.tasks_per_node, a.nodes, ranks))
      .at("SLURM_TASKS_PER_NODE")
      .legal(fmt::format("tasks that add up to {} or more", ranks))
      .fix(fmt::format("sbatch or salloc with --nodes={} --ntasks-per-node={}, or fewer ranks (--ranks {})",
                       a.node_count, (ranks + a.node_count - 1) / a.node_count, a.tasks));
}

}  // namespace hyperrun::process
