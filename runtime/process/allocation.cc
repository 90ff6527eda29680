#include "runtime/process/allocation.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/process/host.h"

namespace hyperrun::process {
namespace {

// Bounds what a list that Slurm did not write may ask for.
constexpr std::int64_t kMostNodes = 1 << 20;

// Reads a number at the text's start and removes it. 0: there is none.
std::int64_t take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return failed == std::errc() ? value : 0;
}

// The tasks of each node: "2(x3),1" is 2, 2, 2, 1.
std::vector<std::int32_t> tasks_of_nodes(const std::string& per_node) {
  std::vector<std::int32_t> tasks;
  std::istringstream parts(per_node);
  for (std::string part; std::getline(parts, part, ',');) {
    std::string_view rest = part;
    const auto of_each = static_cast<std::int32_t>(take_number(rest));
    std::int64_t nodes = 1;
    if (rest.starts_with("(x")) {
      rest.remove_prefix(2);
      nodes = std::min(take_number(rest), kMostNodes);
    }
    tasks.insert(tasks.end(), static_cast<std::size_t>(nodes), of_each);
  }
  return tasks;
}

// The parts of a list, whose commas in brackets separate none: "a[1,3],b" is "a[1,3]" and "b".
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool within = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') within = true;
    if (list[i] == ']') within = false;
    if (list[i] != ',' || within) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(list.substr(begin));
  return parts;
}

// The numbers of "08-10", which are as wide as the first: "08", "09", "10".
std::vector<std::string> numbers_of(std::string_view range) {
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return {std::string(range)};
  std::string_view first = range.substr(0, dash), last = range.substr(dash + 1);
  const std::size_t width = first.size();
  const std::int64_t begin = take_number(first), end = take_number(last);
  std::vector<std::string> numbers;
  for (std::int64_t n = begin; n <= end && n - begin < kMostNodes; ++n)
    numbers.push_back(fmt::format("{:0{}}", n, width));
  return numbers;
}

// Adds the names of a part of Slurm's list: "rack[1-2]node[1,3]" has four.
void add_names(const std::string& begin, std::string_view rest, std::vector<std::string>& names) {
  const std::size_t open = rest.find('['), close = rest.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    names.push_back(begin + std::string(rest));
    return;
  }
  const std::string before = begin + std::string(rest.substr(0, open));
  for (const std::string_view range : parts_of(rest.substr(open + 1, close - open - 1)))
    for (const std::string& number : numbers_of(range))
      add_names(before + number, rest.substr(close + 1), names);
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
  const std::vector<std::int32_t> tasks = tasks_of_nodes(a.tasks_per_node);
  a.tasks = std::accumulate(tasks.begin(), tasks.end(), std::int64_t{0});
  const std::string node = text_of(env("SLURMD_NODENAME"));
  a.this_host_alone = a.node_count == 1 && first_label(node.empty() ? host : node) == first_label(a.nodes);
  return a;
}

std::optional<Allocation> slurm_allocation() {
  return slurm_allocation([](const char* name) { return std::getenv(name); }, host_name());
}

std::vector<HostLine> hosts_of(const Allocation& allocation) {
  std::vector<std::string> names;
  for (const std::string_view part : parts_of(allocation.nodes)) add_names("", part, names);
  const std::vector<std::int32_t> tasks = tasks_of_nodes(allocation.tasks_per_node);
  std::vector<HostLine> hosts;
  if (names.size() != tasks.size()) return hosts;
  for (std::size_t n = 0; n < names.size(); ++n) hosts.push_back({.host = names[n], .slots = tasks[n]});
  return hosts;
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
