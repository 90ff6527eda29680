// The memory part of layer profiles: state, activations kept by micro-batches, temporary peaks, and how much
// of these no memory policy moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/plan/instr_attribution.h"
#include "runtime/plan/layer_kinds.h"
#include "runtime/plan/layer_profile.h"
#include "runtime/plan/parametric_step.h"

namespace hyperrun {

class LayerProfileMemory {
 public:
  // All arguments must outlive this; the step is not frozen yet.
  LayerProfileMemory(const ParametricStep& step, const LayerKinds& kinds, const std::vector<InstrSite>& sites,
                     const std::vector<BufferLifetime>& lifetimes);

  // Adds the bytes to `profile`, whose bytes are 0, for the present sizes of the frozen step.
  void add_to(StepProfile& profile) const;

 private:
  // An event of the middle micro-batch, in program order: a buffer becomes live, a buffer dies, or the live
  // bytes are sampled. State and buffers of the whole step have no events.
  struct MemoryEvent {
    std::size_t which = 0;  // index of the buffer; for a sample, index in used_
    std::int8_t sign = 0;   // 1: live, -1: dead, 0: sample
    bool kept = false;
    int layer = 0;  // layer of the kept buffer, or of the sampled pass
    Phase phase = Phase::kForward;
  };

  // Distinct buffers that one instruction uses.
  struct UsedBuffers {
    bool for_weights = false;
    std::vector<std::size_t> buffers;
  };

  // Category of a buffer that lives for the whole step. A null `state` means the usual category.
  struct StepBuffer {
    StateBytes LayerProfile::*state = nullptr;
    std::int64_t GradientBytes::*own = &GradientBytes::usual;
    AxisList shared_tensor_axes;  // see instr_attribution.h
  };

  void find_step_buffers();
  void find_events();
  void find_deferred();
  void find_update();

  void add_buffers(StepProfile& profile) const;
  void add_step_buffer(LayerProfile& profile, std::size_t buffer) const;
  void add_shared(StepProfile& profile, std::size_t buffer) const;
  void add_deferred(StepProfile& profile) const;
  void add_update(StepProfile& profile) const;
  void add_peaks(StepProfile& profile) const;

  struct Bytes {
    std::int64_t all = 0, moves = 0;
  };
  Bytes bytes_of(const UsedBuffers& used) const;
  std::int64_t movable_bytes(std::size_t buffer) const;
  UsedBuffers used_by(std::size_t instr) const;
  bool is_middle(std::size_t instr) const { return sites_[instr].micro_batch == kMiddleMicroBatch; }

  const ParametricStep& step_;
  const Program& program_;
  const LayerKinds& kinds_;
  const std::vector<InstrSite>& sites_;
  const std::vector<BufferLifetime>& lifetimes_;
  std::vector<StepBuffer> step_buffers_;  // by buffer
  std::vector<MemoryEvent> events_;
  std::vector<std::pair<int, std::size_t>> deferred_;  // layer and buffer
  std::vector<UsedBuffers> used_;
  std::vector<std::pair<int, UsedBuffers>> updates_;  // layer and buffers of each update
  std::vector<std::size_t> wait_, squared_;           // buffers
};

}  // namespace hyperrun
