// Chooses the tokens of a step by a pure function of (seed, step, sequence index in the global batch). It
// knows neither devices nor layout nor micro-batches, so every rank asks for the part it holds and all
// layouts train on the same samples. Nothing has to be saved to resume but the number of samples, with which
// a run goes on whose batch was another.
//
//   tokens   t0 t1 t2 t3 | t4 t5 t6 t7 | t8 ...        sequence = 4
//   window 0 ids t0..t3, targets t1..t4;   window 1 ids t4..t7, targets t5..t8
//
// An epoch visits every window once, in a newly shuffled order. The windows do not overlap: each token is an
// input once and a target once. Remaining tokens, fewer than a window, are left out at the front or the back,
// in different places in every epoch. A batch may span two epochs.
#pragma once

#include <cstdint>
#include <span>

namespace hyperrun {

enum class SampleOrder : std::uint8_t {
  kShuffled,
  kSequential,  // for evaluation: windows 0, 1, 2, ... from the first token on
};

class Sampler {
 public:
  // `tokens` must outlive the sampler, and must have more than `sequence` tokens (TokenStream checks this).
  Sampler(std::span<const std::int32_t> tokens, std::int32_t sequence, std::int32_t batch, std::uint64_t seed,
          SampleOrder order = SampleOrder::kShuffled);

  std::int64_t windows_per_epoch() const { return windows_; }

  // The number of the first sequence of `step`, counted from the beginning of the training.
  std::int64_t first_of(std::int64_t step) const { return step * batch_ + shift_; }
  // Lets the batch of `step` begin with sequence number `first`, as earlier steps may have had other batches.
  void begin(std::int64_t step, std::int64_t first) { shift_ = first - step * batch_; }

  // The index of the first token of sequence `index` (0 <= index < batch) in the global batch of `step`.
  std::int64_t start(std::int64_t step, std::int64_t index) const;

  // The columns [from, from + length) of every sequence; for inputs that are split along the sequence.
  struct Columns {
    std::int32_t from, length;
  };

  // Fills in sequences [first, first + count) of the batch of `step`. `ids` and `targets` are row-major
  // [count, columns.length] (without columns: [count, sequence]); each element is a token id.
  void fill(std::int64_t step, std::int64_t first, std::int64_t count, Columns columns, std::int32_t* ids,
            std::int32_t* targets) const;
  void fill(std::int64_t step, std::int64_t first, std::int64_t count, std::int32_t* ids,
            std::int32_t* targets) const {
    fill(step, first, count, Columns{0, sequence_}, ids, targets);
  }

 private:
  std::span<const std::int32_t> tokens_;
  std::int32_t sequence_, batch_;
  std::uint64_t seed_;
  SampleOrder order_;
  std::int64_t windows_, slack_;
  std::int64_t shift_ = 0;  // sequences that steps with other batches had beyond those of as many of this one
};

}  // namespace hyperrun
