#include "runtime/cost/estimate.h"

#include <map>

#include "runtime/cost/groups.h"
#include "runtime/cost/kernel_costs.h"

namespace hyperrun {
namespace {

class Estimates {
 public:
  Estimates(const Program& program, const Machine& machine, int device)
      : mesh_(program.mesh),
        machine_(machine),
        device_(device),
        topology_(hosts_of(machine, static_cast<int>(mesh_.devices()))),
        costs_(program, machine) {}

  Nanos of(std::size_t i, const InstrOp& op) {
    const auto* c = std::get_if<instr::Collective>(&op);
    return c == nullptr ? costs_.computing(i) : costs_.meeting(i, where(*c));
  }

 private:
  const Where& where(const instr::Collective& c) {
    const int peer = instr::is_message(c.kind) ? c.peer : -1;
    const auto [it, is_new] = known_.try_emplace({c.axes, peer});
    if (!is_new) return it->second;
    std::vector<int> ranks = mesh_.group(device_, c.axes);
    if (peer >= 0) ranks = {device_, ranks[static_cast<std::size_t>(peer)]};
    return it->second = where_of(ranks, topology_, machine_);
  }

  const Mesh& mesh_;
  const Machine& machine_;
  int device_;
  Topology topology_;
  KernelCosts costs_;
  std::map<std::pair<AxisList, int>, Where> known_;
};

}  // namespace

std::vector<Nanos> estimate_durations(const Program& program, const Machine& machine, int device) {
  Estimates estimates(program, machine, device);
  std::vector<Nanos> list;
  list.reserve(program.instrs.size());
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    list.push_back(estimates.of(i, program.instrs[i].op));
  return list;
}

}  // namespace hyperrun
