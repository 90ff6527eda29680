// What the pieces of a step (pieces.h) hold of HBM: what lasts, what micro-batches keep, what lives for a
// moment, and what of it no policy of memory moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/plan/homes.h"
#include "runtime/plan/layer_kinds.h"
#include "runtime/plan/pieces.h"
#include "runtime/plan/sized_step.h"

namespace hyperrun {

class PiecesMemory {
 public:
  // All outlive it; the step is not settled.
  PiecesMemory(const SizedStep& step, const LayerKinds& kinds, const std::vector<Home>& homes,
               const std::vector<Stay>& stays);

  // Of the step, which is settled, in its present sizes. Bytes of `pieces` are 0 before.
  void take(Pieces& pieces) const;

 private:
  // Of the middle micro-batch, in its order: what begins or ends to live in it and lasts no longer than to a
  // backward pass, and looks at what lives.
  struct Walk {
    std::size_t which = 0;  // a buffer; where it looks, of together_
    std::int8_t sign = 0;   // 0: a look
    bool kept = false;
    int layer = 0;  // of what is kept, of the pass that looks
    Phase phase = Phase::kForward;
  };

  // The buffers that an instruction uses, each once.
  struct Together {
    bool for_weights = false;
    std::vector<std::size_t> buffers;
  };

  // Of what lasts, how LayerPieces tells it apart: no state where it is as most is.
  struct Lasting {
    StateBytes LayerPieces::*state = nullptr;
    std::int64_t OwnGradients::*own = &OwnGradients::usual;
    AxisList cut_by;  // homes.h
  };

  void find_lasting();
  void find_walk();
  void find_put_off();
  void find_update();

  void take_buffers(Pieces& pieces) const;
  void take_lasting(LayerPieces& pieces, std::size_t buffer) const;
  void take_shared(Pieces& pieces, std::size_t buffer) const;
  void take_put_off(Pieces& pieces) const;
  void take_update(Pieces& pieces) const;
  void take_peaks(Pieces& pieces) const;

  struct Bytes {
    std::int64_t all = 0, moves = 0;
  };
  Bytes bytes_of(const Together& together) const;
  std::int64_t bytes_that_move(std::size_t buffer) const;
  Together together(std::size_t instr) const;
  bool is_middle(std::size_t instr) const { return homes_[instr].micro_batch == kMiddle; }

  const SizedStep& step_;
  const Program& program_;
  const LayerKinds& kinds_;
  const std::vector<Home>& homes_;
  const std::vector<Stay>& stays_;
  std::vector<Lasting> lasting_;  // by buffer
  std::vector<Walk> walk_;
  std::vector<std::pair<int, std::size_t>> put_off_;  // layer and buffer
  std::vector<Together> together_;
  std::vector<std::pair<int, Together>> updates_;  // with their layers
  std::vector<std::size_t> wait_, squared_;        // buffers
};

}  // namespace hyperrun
