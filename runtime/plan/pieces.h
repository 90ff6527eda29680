// What one device does for a micro-batch, in pieces: a layer's forward pass, its backward pass, what comes
// before the layers and behind them, the update. They are taken from a Program that the compiler makes of a
// model of few layers under the same strategy, so that every operator, layout and collective that the
// compiler knows is in them, and nothing is reckoned that is not executed.
//
// `time` is what a piece adds to a step where it stands among its like. `bound` is never more than that: it
// is how long the piece takes from its first product to the next piece's if all that was issued before it has
// ended, as streams are in order (a longest path of the max-plus system; Baccelli et al., Synchronization and
// Linearity, 1992).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/graph.h"
#include "runtime/ir/program.h"
#include "runtime/plan/sized_step.h"

namespace hyperrun {

struct Piece {
  double time = 0;    // ns
  double bound = 0;   // ns, when a piece of the same pass follows
  double ending = 0;  // ns, when another pass follows: until its own last product has ended
  // ns, of a backward pass: until the last one has ended that another stage waits for. It does not for
  // gradients of weights.
  double handing = 0;
  // ns, of a backward pass: what it computes before it needs what the layer behind hands on, as what is
  // recomputed may be. Where that comes from another stage, it is done meanwhile. Of `time`, of `bound`.
  double ahead = 0, ahead_bound = 0;
  // Of one stream alone, ns: none begins before the one before it has ended.
  std::array<double, kStreams> busy{}, least_busy{};
  bool operator==(const Piece&) const = default;
};

// Of bytes, fewer than 2^52, one of `n` parts, rounded down. What a double is nearest to is no whole number
// more than that then, and processors divide doubles several times as fast as 64-bit integers.
inline std::int64_t part_of(std::int64_t bytes, std::int32_t n) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) / n);
}

// What lasts as long as a step, bytes of a device.
struct StateBytes {
  std::int64_t copies = 0;   // of weights, in the format that products take
  std::int64_t weights = 0;  // that the optimizer keeps
  std::int64_t moments = 0;  // of the optimizer
  std::int64_t gradients = 0;
  std::int64_t constants = 0;
  std::int64_t all() const { return copies + weights + moments + gradients + constants; }
  // Of the same without ZeRO: what ZeRO `zero` over `devices` leaves at least. With copies the weights lie as
  // the moments do.
  std::int64_t at_least(std::int32_t zero, std::int32_t devices) const;
  std::int64_t used() const { return copies > 0 ? copies : weights; }  // by products
  StateBytes operator-(const StateBytes& other) const;
  void add(const StateBytes& other, std::int64_t times);
  bool operator==(const StateBytes&) const = default;
};

// Bytes that a device exchanges along axes that split tokens at least (cut_by(), homes.h), of weights as
// LayerPieces tells them apart.
struct OwnGradients {
  std::int64_t usual = 0, wide = 0, spread = 0, narrow = 0;
  bool operator==(const OwnGradients&) const = default;
};

// A time that has a part of so many bytes: how long each takes is not known yet.
struct Scattered {
  double time = 0, bytes = 0;  // ns, bytes
  double at(double per_byte) const { return time + bytes * per_byte; }
  bool operator==(const Scattered&) const = default;
};

// `bound` and `ending` of a backward pass (Piece) where ZeRO scatters gradients in it.
struct ScatteredPass {
  Scattered bound, ending;
  bool operator==(const ScatteredPass&) const = default;
};

// A backward pass from which a schedule puts off gradients of weights, ns.
struct SplitPass {
  double time = 0, bound = 0, ending = 0;  // of the rest, as Piece has them
  double weights = 0;                      // of the products that make these gradients
  double put_off = 0;                      // what these take with what they wait for, one behind the other
  double exchanged = 0;                    // the same with all the collectives that these gradients have
  bool operator==(const SplitPass&) const = default;
};

// Layers that are alike. Times are of a device, ns; bytes as well.
struct LayerPieces {
  Piece forward, backward;
  // Of `backward`, each at least; they know nothing of the data axis.
  std::array<ScatteredPass, 2> scattered{};
  SplitPass split;              // of `backward`; of what lies behind the layers of `forward`
  double weight_gradients = 0;  // of the backward pass: what no other stage waits for
  // Of each stream, ns at least: what the first micro-batch has less to do, which adds gradients to nothing.
  std::array<double, kStreams> saved{};
  double exchange = 0;               // once a step: collectives of its gradients,
  double optimizer = 0;              // vector work of its update,
  double redistribution = 0;         // collectives behind that,
  double begin = 0, begin_comm = 0;  // vector work and collectives before the first micro-batch
  StateBytes state;
  StateBytes tensors;  // of `state`: not bytes, but how many
  // Of these what lies over the expert axis, along which ZeRO finds nothing to split.
  StateBytes spread;
  // Of the rest what has the width of the feed-forward parts as well as the model's, either of which may be
  // split, and what has not the model's: ZeRO may find nothing to split of it, along whichever axis.
  StateBytes wide, narrow;
  OwnGradients own_gradients;
  double spread_optimizer = 0, spread_begin = 0;
  std::int64_t kept_tensors = 0;     // of `kept` without `kept_here`
  std::int64_t kept_empty = 0;       // bytes of `kept` without `kept_here` that are room for rows of experts
  std::int64_t largest_movable = 0;  // bytes of the largest of all these
  std::int64_t kept = 0;             // of a micro-batch, from its forward to its backward pass
  // Of a micro-batch, from its backward pass until its gradients of weights, where a schedule puts these off:
  // what they read.
  std::int64_t put_off = 0;
  // Of these two what was exchanged, which no policy of memory moves.
  std::int64_t kept_here = 0, put_off_here = 0;
  // Of gradients: what was exchanged, which is there until updates, where these wait for the norm of all; and
  // the rest of those that this is summed up of at once. Most that an update uses besides what was exchanged.
  std::int64_t gradients_here = 0, squared = 0, updated_at_once = 0;
  // Most that an instruction of its passes reads and writes, all of which is in HBM then under any policy.
  // But for those that make gradients of weights, as what ZeRO splits of them is not known everywhere.
  std::int64_t at_once = 0;
  std::int64_t forward_peak = 0, backward_peak = 0;  // most that lives besides, its own kept as well
  std::int64_t here_peak = 0;                        // of both, that no policy moves
  bool operator==(const LayerPieces&) const = default;
};

// Layer kinds in the order of the model: those with a dense feed-forward, then those with experts, if it has
// both.
struct Pieces {
  std::vector<LayerPieces> kinds;
  LayerPieces first, last;  // what lies before the layers, and behind them
  // Of weights that both use, an embedding that is the head as well or that looks further tokens up: of the
  // state of `last` what the device of `first` needs as well, and the other way round. In a pipeline both
  // have it.
  StateBytes first_too, last_too;
  double at_the_end = 0;  // ns: what is known when all gradients are, until weights are updated
  // Each update waits for the norm of all gradients. Else the compiler may bring updates forward, amid the
  // backward pass (runtime/compile/early_updates.h).
  bool update_last = true;
  std::int64_t message = 0;  // bytes of what a layer hands to the next
  bool operator==(const Pieces&) const = default;
};

// Of a strategy's layers.
struct LayersPieces {
  const Pieces* pieces = nullptr;
  const Pieces* deeper = nullptr;  // of those that recompute more, if there are any
};

// Three micro-batches: the first, one among its like, and the last.
inline constexpr int kProbeMicroBatches = 3;

// What of a step does not change with its sizes: which instruction belongs where, what waits for what. The
// step has kProbeMicroBatches. `kind_of`: of each layer; at least two of each kind, one after the other.
class Outline {
 public:
  // The step is not settled, and outlives it.
  Outline(const SizedStep& step, std::vector<int> kind_of);
  ~Outline();

  // Of the step, which is settled, in its present sizes. `durations`: of the instructions that there were,
  // ns; bounds are of `least`, in which nothing is longer.
  Pieces pieces(const std::vector<double>& durations, const std::vector<double>& least) const;

 private:
  class Taking;
  struct Facts;
  std::unique_ptr<Facts> facts_;
};

}  // namespace hyperrun
