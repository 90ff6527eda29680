// What the duration of an instruction is made of: the numbers that duration() puts together, and that are
// shown where it is explained.
#pragma once

#include <span>
#include <string>

#include "collectives/cost.h"
#include "collectives/selection.h"
#include "runtime/cost/groups.h"
#include "runtime/cost/tiles.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// launch + the longer of flops / (rate x tiling x depth) and bytes / (bandwidth x memory); attention that
// writes its scores, and a product that is made of parts, do so besides.
struct ComputeCost {
  const Figure *launch, *rate, *bandwidth;
  double flops = 0, depth = 1;  // `depth`: the efficiency of products, or of attention
  double bytes = 0, memory = 1;
  double score_bytes = 0;
  Tiling tiling{};  // of a product
  // Where efficiencies and tiles come from.
  const Efficiency *depth_curve = nullptr, *memory_curve = nullptr;
  const Tiles* tiles = nullptr;

  double arithmetic() const;       // ns
  double traffic() const;          // ns
  double score_traffic() const;    // ns
  double partial_traffic() const;  // ns
  double nanos() const;
};
ComputeCost compute_cost(const Instr& instr, const Mesh& mesh, const Machine& machine);
// Of a kernel that does several (kernels.h): each operand is read and written once, and what is made in it is
// not read.
ComputeCost compute_cost(std::span<const Instr* const> kernel, const Mesh& mesh, const Machine& machine);

// Bytes that go through HBM for each that is reduced: two are read, one is written.
inline constexpr double kReduceTraffic = 3;

// launch + the time of the algorithm over the widest level that the group crosses inside a host and between
// hosts.
struct CollectiveCost {
  struct Link {
    const Level* level;
    LinkCost cost;
    double rate = 0;        // bytes/s that a device has of it
    double efficiency = 1;  // by `bytes`
  };
  const Figure* launch;
  Algorithm algorithm{};
  int devices = 1;
  double bytes = 0;  // that the collective is about
  Link inside{}, between{};
  double transfer = 0;  // ns
  // At which what is summed goes through HBM, kReduceTraffic bytes for each; none: nothing is summed.
  const Figure* summing = nullptr;

  double nanos() const { return launch->value + transfer; }
};
// What the executor would take, unless the machine's level has rings.
Algorithm algorithm_on(const Machine& machine, const CollectiveArgs& args, const Where& where);
CollectiveCost collective_cost(const instr::Collective& c, const Where& where, const Machine& machine);

// A message from the one to the other; from its own HBM, too, a device fetches over its nearest link.
CollectiveCost fetch_cost(const instr::Fetch& fetch, const Operand& out, const Machine& machine);

// latency + bytes / (rate x efficiency); of what neighbours share each has its part, as all of them move at
// once.
struct TransferCost {
  const Storage* storage;
  Tier tier{};
  double bytes = 0;
  double rate = 0;  // bytes/s that a device has of it
  double efficiency = 1;

  double nanos() const;
};
// `instr`: a Prefetch or a Store. Throws kBadValue when the machine has no such tier.
TransferCost transfer_cost(const Instr& instr, const Machine& machine);
TransferCost transfer_cost(Bytes bytes, Tier tier, const Machine& machine);

// Some lines for people: each number with its meaning, and how it is known.
std::string explain(const ComputeCost& cost);
std::string explain(const CollectiveCost& cost);
std::string explain(const TransferCost& cost);

}  // namespace hyperrun
