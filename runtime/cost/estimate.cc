#include "runtime/cost/estimate.h"

#include <map>

#include "runtime/cost/duration.h"
#include "runtime/cost/groups.h"

namespace hyperrun {
namespace {

class Estimates {
 public:
  Estimates(const Mesh& mesh, const Machine& machine, int device)
      : mesh_(mesh),
        machine_(machine),
        device_(device),
        topology_(hosts_of(machine, static_cast<int>(mesh.devices()))) {}

  Nanos of(const Instr& instr) {
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    return duration(instr, mesh_, c == nullptr ? Where{} : where(*c), machine_);
  }

 private:
  const Where& where(const instr::Collective& c) {
    const int peer = instr::is_message(c.kind) ? c.peer : -1;
    const auto [it, is_new] = known_.try_emplace({c.axes, peer});
    if (!is_new) return it->second;
    std::vector<int> ranks = mesh_.group(device_, c.axes);
    if (peer >= 0) ranks = {device_, ranks[static_cast<std::size_t>(peer)]};
    return it->second = {shape_of(ranks, topology_), reach_of(ranks, topology_, machine_)};
  }

  const Mesh& mesh_;
  const Machine& machine_;
  int device_;
  Topology topology_;
  std::map<std::pair<AxisList, int>, Where> known_;
};

}  // namespace

std::vector<Nanos> estimate_durations(const Program& program, const Machine& machine, int device) {
  Estimates estimates(program.mesh, machine, device);
  std::vector<Nanos> list;
  list.reserve(program.instrs.size());
  for (const Instr& instr : program.instrs) list.push_back(estimates.of(instr));
  return list;
}

}  // namespace hyperrun
