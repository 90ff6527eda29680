// The model of a supernode: the figures of its parts, each with its source. A profile (proto/supernode.proto)
// has all of them. The rates of a job (SupernodeSpec) suffice for a machine of one flat level.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/ir/kernel_table.h"
#include "runtime/ir/tier.h"

namespace hyperrun {

struct SupernodeSpec;

// The kinds of evidence for a figure.
enum class Evidence : std::uint8_t { kMeasured, kDataSheet, kPlaceholder, kGiven };
std::string_view name(Evidence e);  // "measured", "data sheet", "placeholder", "given by the job"

struct Figure {
  double value = 0;
  Evidence evidence = Evidence::kGiven;
  std::string source{};
  // The range in which the true value of a placeholder plausibly lies, with its source. No range: both are 0.
  double low = 0, high = 0;
  std::string range_source{};
  bool has_range() const { return high > 0; }
  bool operator==(const Figure&) const = default;
};

// The share of the peak rate that work of size n reaches: ceiling x n / (n + half). At n = half it is half of
// the ceiling (r_infinity and n_1/2 of Hockney and Jesshope, Parallel Computers, 1981).
struct Efficiency {
  Figure ceiling{1}, half{0};
  double at(double n) const {
    return half.value > 0 && n > 0 ? ceiling.value * n / (n + half.value) : ceiling.value;
  }
  bool operator==(const Efficiency&) const = default;
};

// An efficiency that takes the place of a general one. Its ceiling is 0 where it is not given.
struct OwnEfficiency {
  Figure ceiling{0}, half{0};
  bool is_given() const { return ceiling.value > 0; }
  Efficiency efficiency() const { return {ceiling, half}; }
  bool operator==(const OwnEfficiency&) const = default;
};

// Products are computed in tiles, one on each core at a time. A last round that leaves cores idle costs as
// much as a full one, and a tile that is cut by the edge as much as a whole one. A library has tiles of
// several shapes and takes the fastest (runtime/cost/tiles.h).
struct Tiles {
  Figure cores{0};             // tiles computed at once; 0: no loss to tiles
  Figure rows{0}, columns{0};  // size of the largest tile
  Figure halvings{0};          // how often rows, and columns, may be halved; 0: one shape for all
  // Smaller tiles read more operands for each result. A tile of r x c is slower than the largest one, R x C,
  // by a factor of 1 + operands (1/r + 1/c - 1/R - 1/C).
  Figure operands{0};
  Figure parts{1};  // most tiles that share the depth of one result
  bool operator==(const Tiles&) const = default;
};

// Attention that writes its scores to memory and reads them again, in several kernels. Masked scores cost as
// much as others.
struct Scores {
  Figure forward{0}, backward{0};  // bytes of memory traffic for each score; 0: scores stay on the chip
  Figure kernels{1};               // kernels that a feeder hands over for one attention, each way
  // Fused kernels need heads x sequences to be a multiple of `multiple`. Otherwise these figures hold.
  Figure multiple{1}, forward_apart{0}, backward_apart{0};
  Figure kernels_apart{1};
  bool together(double heads) const { return std::fmod(heads, multiple.value) == 0; }
  bool operator==(const Scores&) const = default;
};

// The host processor that hands a device its instructions one after the other, ahead of the device if it can.
// It waits for the device before it loads a micro-batch, reads the loss, sends to another stage or uses a
// received message. All 0: the device takes instructions from its own memory.
struct Feeder {
  Figure forward{0};      // ns for an instruction of the forward pass
  Figure backward{0};     // ns for any other instruction
  Figure member{0};       // more ns for a collective, for each device of its group
  Figure micro_batch{0};  // ns to begin a micro-batch, while the device waits
  bool in_order = false;  // compute and communication of a device take turns
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

// One level of the interconnect. Its units are `devices` consecutive devices each; a unit lies within one
// unit of the next level.
struct Level {
  std::string name;          // "node"
  std::int64_t devices = 1;  // devices of a unit
  bool addressable = false;  // a device reads and writes its peers' HBM in place
  bool mesh = false;         // a device has a link to each other device; a group of p uses p - 1 of them
  bool ring = false;         // all-reduces are rings of all members, whatever the executor would choose
  Figure latency;         // ns of a message between two devices whose smallest common unit is of this level
  Figure bandwidth;       // bytes/s of a device in one direction
  Figure shared;          // bytes/s of all devices of one unit of the level below; 0: not shared
  Efficiency efficiency;  // by the bytes that a device sends and receives
  // The efficiency of one kind of collective, in place of `efficiency` where it is given.
  OwnEfficiency all_reduce{}, all_gather{}, reduce_scatter{}, all_to_all{};
  bool operator==(const Level&) const = default;
};

// A tier beyond HBM: the pool or flash.
struct Storage {
  Figure capacity{0};   // bytes of a device's share
  Figure bandwidth{0};  // bytes/s of a device in each direction; 0: the machine has no such tier
  Figure latency{0};    // ns of a transfer without its bytes
  Figure shared{0};     // bytes/s of `sharers` neighbours together in each direction; 0: not shared
  Figure sharers{1};
  Efficiency efficiency;  // by the bytes of a transfer
  bool exists() const { return bandwidth.value > 0; }
  bool operator==(const Storage&) const = default;
};

// What a training framework keeps in HBM beyond the tensors of the mathematics.
struct SoftwareMemory {
  // Bytes an element of the gradients that kernels hand to the framework in place of those which they have
  // added to the sums of a step. All weights of one shape share one.
  Figure unused_gradients{0};
  // Bytes that the library of products takes: on each device, besides on devices with the head, and besides
  // on devices with experts.
  Figure workspace{0}, head_workspace{0}, expert_workspace{0};
  Figure lasting_gradients{0};  // 1: sums of gradients are there all the time, not from their first use on
  Figure lasting_copies{0};     // 1: so are the copies of weights that products take
  Figure communicator{0};       // bytes for each list of mesh axes along which a device communicates
  // Bytes that the driver and runtime take of HBM; they take the place of the machine's reserve. 0: not
  // known.
  Figure reserve{0};
  bool operator==(const SoftwareMemory&) const = default;
};

// How a training framework hands work to a device.
struct SoftwareIssue {
  Figure in_order{0};  // 1: compute and communication of a device take turns
  Figure fused{0};     // 1: a kernel may do several instructions
  Figure joined{0};    // 1: products of one operand are one product, whatever their widths
  // Bytes of HBM traffic a step for each element of the sums of gradients: setting to 0, scaling.
  Figure gradient_traffic{0};
  // Bytes of HBM traffic, each way, for each byte of an attention's queries, keys and values: copies of
  // slices.
  Figure attention_traffic{0};
  // Bytes of HBM traffic for each byte that an all-to-all of equal parts exchanges: parts are put in order.
  Figure exchange_traffic{0};
  Feeder feeder;  // in place of the machine's, if it takes time
  bool operator==(const SoftwareIssue&) const = default;
};

// A training framework: what it keeps and how it issues. Figures are 0 where it does nothing of the kind.
struct Software {
  std::string name, about;
  SoftwareMemory memory;
  SoftwareIssue issue;
  bool operator==(const Software&) const = default;
};

struct Machine {
  std::string name, about;
  Rates cube;
  Figure vector;         // operations a second
  Figure hbm;            // bytes
  Figure reserve{0};     // bytes of HBM that the machine's own software takes; no job has them
  Figure hbm_bandwidth;  // bytes/s
  Efficiency products;   // by the depth of a product
  Efficiency attention;  // by the positions of a causal sequence
  Efficiency memory;     // by the bytes that an instruction reads and writes
  Scores scores;
  Tiles tiles;
  bool fused = false;  // a kernel may do several instructions (runtime/cost/fusion_groups.h)
  Feeder feeder;
  // Processor cores that the devices of a host share equally while they compute; 0: each computes alone.
  Figure host_cores{0};
  Figure launch_cube, launch_vector, launch_comm;  // ns of an instruction without its work
  Storage pool, flash;
  std::vector<Level> levels;  // from the inside out; the last holds any number of devices
  std::int32_t devices = 0;   // devices of the whole machine; 0: any number
  // Shares of the peak that kernels of given shapes were measured to reach. They take the place of the
  // efficiencies above for the kernels that they have.
  KernelTable kernels;
  Software software;  // the framework that runs on the machine; without a name there is none

  // What the machine does by itself or because its software does.
  const Feeder& feeding() const {
    return software.issue.feeder.takes_time() ? software.issue.feeder : feeder;
  }
  bool in_order() const { return feeding().in_order || software.issue.in_order.value > 0; }
  bool fuses() const { return fused || software.issue.fused.value > 0; }
  bool joins() const { return software.issue.joined.value > 0; }

  // Bytes of HBM that no job has, and the largest budget of a job.
  double reserved() const {
    return software.memory.reserve.value > 0 ? software.memory.reserve.value : reserve.value;
  }
  double hbm_of_jobs() const { return hbm.value - reserved(); }
  const Storage& storage(Tier tier) const { return tier == Tier::kFlash ? flash : pool; }
  // The lowest level with a unit that holds both devices; -1 if a and b are the same device.
  int level_between(std::int64_t a, std::int64_t b) const;
  // The number of devices that share memory: those of a unit of the widest addressable level. 1: none do.
  std::int64_t devices_of_a_host() const;

  bool operator==(const Machine&) const = default;
};

// The machine of the job's profile; without a profile a machine of one addressable level with the job's
// rates.
Machine machine_of(const SupernodeSpec& spec);

}  // namespace hyperrun
