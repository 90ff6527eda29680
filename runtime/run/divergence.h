// Says which losses have diverged: those that are not finite, and those that jump.
#pragma once

#include <cstdint>
#include <deque>

namespace hyperrun {

class Divergence {
 public:
  // A loss above `jump` times the mean of the last kLosses (or as many as there are) has jumped; 0: none has.
  explicit Divergence(double jump) : jump_(jump) {}

  // Throws kNotFinite if the step, one of loss and norm, has diverged. `step` is the number of steps done.
  void require_sound(double loss, double grad_norm, std::int64_t step);
  // Takes a loss of an earlier start, which was sound.
  void remember(double loss);

  static constexpr std::size_t kLosses = 16;

 private:
  double jump_;
  std::deque<double> losses_;  // the last ones, all sound
};

// Throws kNotFinite unless both values are finite. `step` is the number of steps done.
void require_finite(double loss, double grad_norm, std::int64_t step);

}  // namespace hyperrun
