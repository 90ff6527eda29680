#include "runtime/plan/transfers.h"

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/cost/cost.h"

namespace hyperrun {
namespace {

constexpr double kNanos = 1e9;
constexpr int kParts = 64;  // equal parts of the excess, each placed where it costs least

// Time of passes between others, ns, and busy time of both transfer directions in it.
struct Window {
  double lasts = 0, in = 0, out = 0;
  double longer() const { return std::max(0.0, std::max(in, out) - lasts); }
};

enum Kind : std::size_t { kKept, kGradients, kWeights, kMoments, kMasters, kKinds };

class TransferModel {
 public:
  TransferModel(const Forecast& f, Tier tier, const Machine& machine, Bytes hbm)
      : f_(f),
        tier_(tier),
        machine_(machine),
        beyond_(static_cast<double>(f.used() + room_for_transfers() - hbm.value)) {
    set(kKept, f.kept);
    set(kGradients, f.gradients);
    set(kWeights, f.weights);
    set(kMoments, {f.optimizer.bytes - f.masters.bytes, f.optimizer.tensors - f.masters.tensors});
    set(kMasters, f.masters);
  }

  // Time added to the step, ns.
  double longer() {
    const double part = beyond_ / kParts;
    for (double left = beyond_; left > 0;) {
      const std::size_t next = cheapest(std::min(part, left));
      if (next == kKinds) break;
      const double bytes = std::min({part, left, all_[next] - moved_[next]});
      moved_[next] += bytes, left -= bytes;
    }
    return costs(moved_);
  }

 private:
  using Bytes64 = std::array<double, kKinds>;

  // One tensor is in use, one arrives or leaves beside it.
  std::int64_t room_for_transfers() const { return 2 * f_.largest_movable; }

  void set(Kind kind, const Movable& m) {
    all_[kind] = static_cast<double>(std::max<std::int64_t>(0, m.bytes));
    if (m.bytes <= 0) return;
    const std::int64_t tensors = std::max<std::int64_t>(1, m.tensors);
    const Bytes sent((m.bytes - m.empty) / tensors);
    nanos_[kind] = transfer_cost(sent, tier_, machine_).nanos() * static_cast<double>(tensors) /
                   static_cast<double>(m.bytes);
  }

  std::size_t cheapest(double part) const {
    std::size_t best = kKinds;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < kKinds; ++k) {
      if (moved_[k] >= all_[k]) continue;
      Bytes64 with = moved_;
      with[k] += std::min(part, all_[k] - moved_[k]);
      const double cost = (costs(with) - costs(moved_)) / (with[k] - moved_[k]);
      if (cost < least) best = k, least = cost;
    }
    return best;
  }

  double costs(const Bytes64& moved) const {
    const auto busy = [&](Kind k, double times) { return moved[k] * nanos_[k] * times; };
    const double weights = busy(kWeights, f_.sweeps), kept = busy(kKept, f_.sweeps_of_kept);
    const double gradients = busy(kGradients, std::max(1.0, f_.sweeps - 1));
    const double a = f_.warmup_share;  // share of forward passes without backward passes between them
    const Window ahead{a * f_.forward, a * weights, a * kept};
    const Window back{f_.backward + (1 - a) * f_.forward, (2 - a) * weights + gradients + kept,
                      gradients + (1 - a) * kept};
    return ahead.longer() + back.longer() + busy(kMoments, 1) + busy(kMasters, 2);
  }

  const Forecast& f_;
  Tier tier_;
  const Machine& machine_;
  double beyond_;                      // bytes beyond HBM
  Bytes64 all_{}, nanos_{}, moved_{};  // bytes; ns for a byte of room freed; bytes
};

}  // namespace

Forecast with_transfers(const Forecast& forecast, Tier tier, const Machine& machine, Bytes hbm) {
  if (forecast.memory <= hbm.value || !machine.storage(tier).exists()) return forecast;
  Forecast f = forecast;
  f.transfer = TransferModel(forecast, tier, machine, hbm).longer();
  f.time += f.transfer;
  f.bound = std::max(forecast.bound, least_transfers(forecast, machine.storage(tier), hbm));
  return f;
}

double least_transfers(const Forecast& forecast, const Storage& tier, Bytes hbm) {
  if (forecast.least_swept <= hbm.value || !tier.exists()) return 0;
  const auto beyond = static_cast<double>(forecast.least_swept - hbm.value);
  // A last sweep is not counted: what remains of it may be shared with the next one.
  return std::max(0.0, forecast.least_sweeps - 1) * beyond / tier.bandwidth.value * kNanos;
}

}  // namespace hyperrun
