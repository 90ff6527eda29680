// The supernode as it is modelled: what its parts can do, and where each number comes from. A profile
// (proto/supernode.proto) says all of it; the rates of a job (SupernodeSpec) say as much as one flat level
// needs.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/ir/tier.h"

namespace hyperrun {

struct SupernodeSpec;

// How a number is known.
enum class Evidence : std::uint8_t { kMeasured, kDataSheet, kPlaceholder, kGiven };
std::string_view name(Evidence e);  // "measured", "data sheet", "placeholder", "given by the job"

struct Figure {
  double value = 0;
  Evidence evidence = Evidence::kGiven;
  std::string source{};
  // The range in which the true value of a placeholder plausibly lies, and where that is from. No range:
  // both are 0.
  double low = 0, high = 0;
  std::string range_source{};
  bool has_range() const { return high > 0; }
  bool operator==(const Figure&) const = default;
};

// The share of its peak that work of size n reaches: ceiling x n / (n + half); at `half` it is half of the
// ceiling (r_infinity and n_1/2 of Hockney and Jesshope, Parallel Computers, 1981).
struct Efficiency {
  Figure ceiling{1}, half{0};
  double at(double n) const {
    return half.value > 0 && n > 0 ? ceiling.value * n / (n + half.value) : ceiling.value;
  }
  bool operator==(const Efficiency&) const = default;
};

// Products are computed in tiles, one a core at a time: a last round that leaves cores idle, and tiles that
// stand out over the edge, cost as much as whole ones. A library has tiles of several shapes, and takes the
// fastest (runtime/cost/tiles.h).
struct Tiles {
  Figure cores{0}, rows{0}, columns{0};  // of the largest tile; cores 0: no such loss
  Figure halvings{0};                    // of rows and of columns each, at most; else one shape for all
  // Smaller tiles read more operands a result: one of r x c is slower than the largest one, R x C, by
  // 1 + operands (1/r + 1/c - 1/R - 1/C).
  Figure operands{0};
  Figure parts{1};  // tiles that share the depth of one result, at most
  bool operator==(const Tiles&) const = default;
};

// Attention that writes its scores to memory and reads them again, in kernels one after the other. Masked
// scores are computed like others.
struct Scores {
  Figure forward{0}, backward{0};  // bytes that one score moves; 0: scores stay on the chip
  // Kernels that do several things at once take only so many heads x sequences, or a multiple. Else:
  Figure multiple{1}, forward_apart{0}, backward_apart{0};
  Figure kernels{1}, kernels_apart{1};  // that a feeder hands over, each way
  bool together(double heads) const { return std::fmod(heads, multiple.value) == 0; }
  bool operator==(const Scores&) const = default;
};

// The processor that hands a device its instructions one after the other, ahead of it where it can. Before it
// loads a micro-batch, looks at its loss, sends to another stage or uses what has come from one, it waits for
// the device. All 0: the device takes instructions from its own memory.
struct Feeder {
  Figure forward{0}, backward{0};  // ns, of an instruction in the forward pass, and in others
  Figure member{0};                // ns, of a collective for each device of its group, besides
  Figure micro_batch{0};           // ns, of beginning one, while the device waits
  bool in_order = false;           // what computes and what communicates take turns
  bool takes_time() const {
    return forward.value > 0 || backward.value > 0 || member.value > 0 || micro_batch.value > 0;
  }
  bool operator==(const Feeder&) const = default;
};

struct Rates {
  Figure f32, bf16;  // operations a second
  const Figure& of(DType type) const { return type == DType::kBF16 ? bf16 : f32; }
  bool operator==(const Rates&) const = default;
};

// Units of so many devices, neighbours by number; those of a level lie whole in those of the next.
struct Level {
  std::string name;  // "node"
  std::int64_t devices = 1;
  bool addressable = false;  // a device reads and writes its peers' HBM in place
  bool mesh = false;         // a link of its own to each other device: a group of p uses p - 1 of them
  bool ring = false;         // all-reduces over it are rings of all members, whatever the executor would take
  Figure latency;            // ns, of a message between devices of one unit that no smaller unit holds
  Figure bandwidth;          // bytes/s, of a device, one direction
  Figure shared;             // bytes/s, of all devices of a unit of the level below together; 0: not shared
  Efficiency efficiency;     // by the bytes that a device sends and receives
  bool operator==(const Level&) const = default;
};

// Memory beyond HBM that devices take from and bring to: the pool, flash.
struct Storage {
  Figure capacity{0};   // bytes, a device's share
  Figure bandwidth{0};  // bytes/s, of a device, each direction; 0: there is none
  Figure latency{0};    // ns, of a transfer besides
  Figure shared{0};     // bytes/s, each direction, of `sharers` neighbours together; 0: not shared
  Figure sharers{1};
  Efficiency efficiency;  // by the bytes of a transfer
  bool exists() const { return bandwidth.value > 0; }
  bool operator==(const Storage&) const = default;
};

struct Machine {
  std::string name, about;
  Rates cube;
  Figure vector;         // operations a second
  Figure hbm;            // bytes
  Figure reserve{0};     // bytes of it that the machine's own software takes: no job has them
  Figure hbm_bandwidth;  // bytes/s
  Efficiency products;   // by the depth of a product
  Efficiency attention;  // by the positions of a causal sequence
  Efficiency memory;     // by the bytes that an instruction reads and writes
  Scores scores;
  Tiles tiles;
  bool fused = false;  // a kernel may do several instructions: runtime/cost/fusion_groups.h says which
  Feeder feeder;
  // That the devices of a host share while they compute, all at the same rate; 0: each computes alone.
  Figure host_cores{0};
  Figure launch_cube, launch_vector, launch_comm;  // ns, of an instruction without its work
  Storage pool, flash;
  std::vector<Level> levels;  // from the inside out; the last holds any number of devices
  std::int32_t devices = 0;   // of the whole machine; 0: any number

  double hbm_of_jobs() const { return hbm.value - reserve.value; }  // bytes: the largest budget of a job
  const Storage& storage(Tier tier) const { return tier == Tier::kFlash ? flash : pool; }
  // The lowest level of which one unit holds both devices; -1: it is one device.
  int level_between(std::int64_t a, std::int64_t b) const;
  // Devices that share memory: those of one unit of the widest addressable level. 1: none do.
  std::int64_t devices_of_a_host() const;

  bool operator==(const Machine&) const = default;
};

// The job's profile, or what its rates say: a machine of one level, on which all memory is addressable.
Machine machine_of(const SupernodeSpec& spec);

}  // namespace hyperrun
