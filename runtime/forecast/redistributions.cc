#include "runtime/forecast/redistributions.h"

#include <map>
#include <tuple>
#include <utility>

#include "collectives/cost.h"
#include "collectives/selection.h"
#include "runtime/base/parallel.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/collective_args.h"
#include "runtime/ir/describe_layout.h"
#include "runtime/report/table.h"
#include "runtime/verify/merged.h"

namespace hyperrun {
namespace {

// Collects the redistributions of one device, one entry for equal operations.
class RedistributionLister {
 public:
  RedistributionLister(const Program& program, const Graph& graph, const Machine& machine, int device)
      : program_(program),
        graph_(graph),
        device_(device),
        topology_(Topology::one_host(static_cast<int>(program.mesh.devices()))) {
    const Program* const programs[] = {&program};
    for (AxisGroups& g : groups_of(programs, topology_, machine)) {
      const AxisList axes = g.axes;
      groups_.emplace(axes, std::move(g));
    }
  }

  std::vector<ListedStep> run(const std::vector<Write>& writes) {
    for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
      if (writes[i].node < 0) continue;
      const Node& node = graph_.nodes[static_cast<std::size_t>(writes[i].node)];
      if (const auto* c = std::get_if<instr::Collective>(&program_.instrs[i].op))
        add(node, std::string(name(c->kind)), c->axes, bytes_of(*c));
      else if (const auto* slice = std::get_if<op::Slice>(&node.op))
        add(node, "slice", slice->axes, 0);
    }
    return std::move(list_);
  }

 private:
  std::int64_t bytes_of(const instr::Collective& c) const {
    const CollectiveArgs args = collective_args(c, static_cast<int>(program_.mesh.size(c.axes)));
    const Place& place = groups_.at(c.axes).place(device_);
    return wire_bytes(args, select(args, place.shape), place).value;
  }

  void add(const Node& node, std::string operation, const AxisList& axes, std::int64_t bytes) {
    ListedStep step{tensor_of(node),
                    change_of(node),
                    std::move(operation),
                    program_.mesh.to_string(axes),
                    without_numbers(node.reason),
                    bytes,
                    1};
    const Key key{step.tensor, step.change, step.operation, step.axes, step.reason, bytes};
    const auto [at, fresh] = place_.try_emplace(key, list_.size());
    if (fresh)
      list_.push_back(std::move(step));
    else
      ++list_[at->second].times;
  }

  // The tensor's name as users know it: "x" for "x@user", and for the intermediate tensors "x.local" and
  // "x.step".
  std::string tensor_of(const Node& node) const {
    const TensorId t = node.inputs.empty() ? node.outputs[0] : node.inputs[0];
    std::string name = graph_[t].name;
    name = name.substr(0, name.find('@'));
    for (const std::string_view suffix : {".local", ".step"})
      if (name.ends_with(suffix)) name.erase(name.size() - suffix.size());
    return without_numbers(name);
  }

  // The change of layout, or the one layout of a message, which changes none.
  std::string change_of(const Node& node) const {
    if (node.inputs.empty()) return describe_layout(graph_, node.outputs[0], program_.mesh);
    if (node.outputs.empty() ||
        graph_.layouts[node.inputs[0].index()] == graph_.layouts[node.outputs[0].index()])
      return describe_layout(graph_, node.inputs[0], program_.mesh);
    return describe_change(graph_, node.inputs[0], node.outputs[0], program_.mesh);
  }

  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, std::int64_t>;

  const Program& program_;
  const Graph& graph_;
  int device_;
  Topology topology_;
  std::map<AxisList, AxisGroups> groups_;
  std::vector<ListedStep> list_;
  std::map<Key, std::size_t> place_;
};

}  // namespace

std::vector<std::vector<ListedStep>> list_redistributions(const Compiled& compiled, const Job& job) {
  const Plan& plan = compiled.plan;
  const Merged merged = merge(compiled, job.parallel.pipeline);
  const Machine machine = machine_of(job.supernode);
  const std::vector<int> devices = plan.mesh.group(0, plan.role_axes);
  std::vector<std::vector<ListedStep>> lists(plan.roles.size());
  parallel_for(lists.size(), [&](std::size_t role) {
    const Program& train = plan.roles[role].program("train");
    lists[role] = RedistributionLister(train, merged.graph, machine, devices[role])
                      .run(writes(train, merged, role, job.training.micro_batches));
  });
  return lists;
}

std::string redistribution_table(const std::vector<ListedStep>& list) {
  Table table({left("what moves"), left("from -> to"), left("by"), right("bytes"), right("times")});
  std::vector<std::string> reasons;  // in the order of the step
  std::map<std::string, std::vector<const ListedStep*>> by_reason;
  std::map<std::string, std::int64_t> totals;
  std::int64_t all = 0;
  for (const ListedStep& s : list) {
    auto& steps = by_reason[s.reason];
    if (steps.empty()) reasons.push_back(s.reason);
    steps.push_back(&s);
    totals[s.axes] += s.bytes * s.times;
    all += s.bytes * s.times;
  }
  for (const std::string& reason : reasons) {
    table.note(reason);
    for (const ListedStep* s : by_reason[reason])
      table.row({"  " + s->tensor, s->change, s->operation + " " + s->axes, with_separators(s->bytes),
                 std::to_string(s->times)});
  }
  if (!table.empty()) table.rule();
  for (const auto& [axes, bytes] : totals)
    table.row({"all over " + axes, "", "", with_separators(bytes), ""});
  table.row({"all", "", "", with_separators(all), ""});
  return table.str("  ");
}

std::string without_numbers(const std::string& name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9' && i > 0 && (name[i - 1] == '.' || out.back() == '*');
    if (!digit)
      out += name[i];
    else if (out.back() != '*')
      out += '*';
  }
  return out;
}

}  // namespace hyperrun
