#include "runtime/run/divergence.h"

#include <fmt/core.h>

#include <cmath>
#include <numeric>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// A nan is printed without its sign, which has no meaning.
std::string text(double v) { return std::isnan(v) ? "nan" : fmt::format("{:f}", v); }

}  // namespace

void Divergence::require_sound(double loss, double grad_norm, std::int64_t step) {
  require_finite(loss, grad_norm, step);
  if (jump_ > 0 && !losses_.empty()) {
    const double mean =
        std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
    if (loss > jump_ * mean)
      throw Error(Code::kNotFinite, fmt::format("the loss is {}, {:.4g} times the mean of the last {} ({})",
                                                text(loss), loss / mean, losses_.size(), text(mean)))
          .at(fmt::format("step {}", step))
          .legal(fmt::format("up to run.divergence_jump, {:g} times the mean", jump_))
          .fix(
              "lower training.lr, raise run.divergence_jump, or leave the samples out: in run: "
              "on_divergence: "
              "\"skip\"");
  }
  remember(loss);
}

void Divergence::remember(double loss) {
  losses_.push_back(loss);
  if (losses_.size() > kLosses) losses_.pop_front();
}

void require_finite(double loss, double grad_norm, std::int64_t step) {
  if (std::isfinite(loss) && std::isfinite(grad_norm)) return;
  throw Error(Code::kNotFinite,
              fmt::format("the loss is {}, the gradient norm is {}", text(loss), text(grad_norm)))
      .at(fmt::format("step {}", step))
      .fix("lower training.lr, lengthen training.warmup_steps or lower training.clip_norm");
}

}  // namespace hyperrun
