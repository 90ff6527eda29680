// The cost model: the terms that make up an instruction's duration. duration() (duration.h) adds them up, and
// explain() shows them.
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

// nanos() = launch + max(flops / (rate x tiling x depth), bytes / (bandwidth x memory)), plus the traffic of
// scores if attention writes them, plus the traffic of partial sums if a product is split.
struct ComputeCost {
  const Figure *launch, *rate, *bandwidth;
  double flops = 0;
  double depth = 1;        // efficiency of products or attention
  double bytes = 0;        // HBM traffic
  double memory = 1;       // efficiency of HBM
  double score_bytes = 0;  // written and read
  Tiling tiling{};         // of a product
  // The machine's figures behind efficiencies and tiles.
  const Efficiency *depth_curve = nullptr, *memory_curve = nullptr;
  const Tiles* tiles = nullptr;
  // The table that has the share of such a kernel, as `depth`, or as `memory` if `by_memory`; null: none has.
  const KernelTable* table = nullptr;
  bool by_memory = false;

  double arithmetic() const;       // ns
  double traffic() const;          // ns
  double score_traffic() const;    // ns
  double partial_traffic() const;  // ns
  double nanos() const;
};
ComputeCost compute_cost(const Instr& instr, const Mesh& mesh, const Machine& machine);
// The cost of one kernel that runs a fusion group (fusion_groups.h). Each operand is read and written once,
// and intermediate results are not read.
ComputeCost compute_cost(std::span<const Instr* const> kernel, const Mesh& mesh, const Machine& machine);

// HBM traffic per reduced byte: two bytes are read, one is written.
inline constexpr double kReduceTraffic = 3;

// nanos() = launch + the algorithm's time over the widest levels that the group crosses inside a host and
// between hosts.
struct CollectiveCost {
  struct Link {
    const Level* level;
    LinkCost cost;
    double rate = 0;        // bytes/s, a device's share
    double efficiency = 1;  // for messages of `bytes`
    // The figures of the efficiency: the level's, or its own of this kind of collective.
    const Figure *ceiling = nullptr, *half = nullptr;
  };
  const Figure* launch;
  Algorithm algorithm{};
  int devices = 1;
  double bytes = 0;  // of the collective's data
  Link inside{}, between{};
  double transfer = 0;  // ns
  // HBM bandwidth for summing, kReduceTraffic bytes per byte; null if nothing is summed.
  const Figure* summing = nullptr;

  double nanos() const { return launch->value + transfer; }
};
// The executor's choice, except that levels with rings use the ring.
Algorithm algorithm_on(const Machine& machine, const CollectiveArgs& args, const Where& where);
CollectiveCost collective_cost(const instr::Collective& c, const Where& where, const Machine& machine);

// The cost of a message between two devices. A fetch from a device's own HBM also goes over its nearest link.
CollectiveCost fetch_cost(const instr::Fetch& fetch, const Operand& out, const Machine& machine);

// nanos() = latency + bytes / (rate x efficiency). Neighbours that share a storage each have an equal part of
// its bandwidth, as all of them transfer at once.
struct TransferCost {
  const Storage* storage;
  Tier tier{};
  double bytes = 0;
  double rate = 0;  // bytes/s, a device's share
  double efficiency = 1;

  double nanos() const;
};
// `instr`: a Prefetch or a Store. Throws kBadValue if the machine has no such tier.
TransferCost transfer_cost(const Instr& instr, const Machine& machine);
TransferCost transfer_cost(Bytes bytes, Tier tier, const Machine& machine);

// Lines of text: each number with its meaning and its evidence.
std::string explain(const ComputeCost& cost);
std::string explain(const CollectiveCost& cost);
std::string explain(const TransferCost& cost);

}  // namespace hyperrun
