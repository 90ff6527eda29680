#include "runtime/forecast/step_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "runtime/cost/groups.h"
#include "runtime/forecast/describe_role.h"
#include "runtime/report/memory_chart.h"
#include "runtime/report/table.h"
#include "runtime/run/device_use.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

// The order of categories in the picture: state that lasts over the step at the bottom, short-lived buffers
// on top.
constexpr std::array kFromTheBottom = {Category::kWeights,     Category::kOptimizer,     Category::kConstants,
                                       Category::kCache,       Category::kData,          Category::kGradients,
                                       Category::kActivations, Category::kCommunication, Category::kScratch,
                                       Category::kSoftware};
static_assert(kFromTheBottom.size() == kCategories);

Bytes bytes_of(const LivePoint& point, Category c) { return point.bytes[static_cast<std::size_t>(c)]; }

// The first point with the most live bytes.
const LivePoint& fullest(const std::vector<LivePoint>& points) {
  return *std::ranges::max_element(points, {}, &LivePoint::total);
}

}  // namespace

StepMemory::StepMemory(const Job& job, const Plan& plan) : job_(job) {
  const Machine machine = machine_of(job.supernode);
  const SimResult result = simulate(plan, "train", job.supernode, hosts_of(machine, job.supernode.devices));
  end_ = result.makespan;
  subtitle_ = fmt::format("{} devices, {}; a step of {}, simulated ({})", job.supernode.devices,
                          describe_mesh(plan.mesh), to_string(end_), machine.name);
  const std::vector<int> first = plan.mesh.group(0, plan.role_axes);
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const Role& role = plan.roles[r];
    roles_.push_back({plan.roles.size() > 1 ? describe_role(job, r) : "", first[r], role.peak(),
                      live_by_category(role.program("train"), result.times(first[r]).spans)});
  }
}

std::string StepMemory::table(std::size_t role) const {
  const RoleMemory& memory = roles_[role];
  const LivePoint &peak = fullest(memory.points), &last = memory.points.back();
  Table table({left("category"), right("at the peak"), right("highest"), right("at the end")});
  for (std::size_t c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    const auto bytes = [&](const LivePoint& p) { return bytes_of(p, category); };
    const Bytes highest = bytes(*std::ranges::max_element(memory.points, {}, bytes));
    if (highest.value > 0)
      table.row(
          {std::string(name(category)), to_string(bytes(peak)), to_string(highest), to_string(bytes(last))});
  }
  table.rule();
  table.row({"together", to_string(peak.total()), to_string(peak.total()), to_string(last.total())});
  table.row({"planned", "", to_string(memory.planned), ""});
  table.row({"budget", "", to_string(job_.supernode.hbm), ""});
  return fmt::format("HBM of device {}{} over the simulated step, the most at {} of {}\n{}", memory.device,
                     memory.name.empty() ? "" : fmt::format(", {},", memory.name),
                     to_string(Nanos(peak.time)), to_string(end_), table.str("  "));
}

std::string StepMemory::svg() const {
  MemoryChart chart{job_.name + ": HBM over a step", subtitle_, job_.supernode.hbm.value, end_.value, {}, {}};
  for (const Category c : kFromTheBottom) chart.categories.emplace_back(name(c));
  for (const RoleMemory& memory : roles_) {
    MemoryPanel& panel = chart.panels.emplace_back();
    panel.name = memory.name;
    panel.planned = memory.planned.value;
    for (const LivePoint& p : memory.points) panel.times.push_back(p.time);
    for (const Category c : kFromTheBottom) {
      std::vector<std::int64_t>& bytes = panel.bytes.emplace_back();
      for (const LivePoint& p : memory.points) bytes.push_back(bytes_of(p, c).value);
    }
  }
  return to_svg(chart);
}

}  // namespace hyperrun
