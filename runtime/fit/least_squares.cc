#include "runtime/fit/least_squares.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using Vector = std::vector<double>;

// The fit. Each unknown is in units of its deviation, relative to its expected value.
class Fit {
 public:
  Fit(std::span<const Unknown> unknowns, const std::function<Vector(std::span<const double>)>& residuals,
      const LeastSquaresOptions& options)
      : unknowns_(unknowns), residuals_(residuals), scale_(options.scale), at_(unknowns.size(), 0.0) {
    for (std::size_t i = 0; i < at_.size(); ++i) at_[i] = clamped(i, 0);
    found_ = evaluate(at_);
    cost_ = cost(found_, at_);
    for (int round = 0; round < options.rounds; ++round)
      if (!improve()) break;
  }

  Fitted result() const { return {values(at_), cost_, evaluations_}; }

 private:
  double clamped(std::size_t i, double u) const {
    const Unknown& k = unknowns_[i];
    return std::clamp(u, (k.least - k.expected) / k.deviation, (k.most - k.expected) / k.deviation);
  }

  Vector values(const Vector& u) const {
    Vector v;
    for (std::size_t i = 0; i < u.size(); ++i)
      v.push_back(unknowns_[i].expected + u[i] * unknowns_[i].deviation);
    return v;
  }

  Vector evaluate(const Vector& u) {
    ++evaluations_;
    Vector r = residuals_(values(u));
    for (const double x : r) HR_CHECK(std::isfinite(x), "a residual is a number");
    HR_CHECK(found_.empty() || r.size() == found_.size());
    return r;
  }

  double cost(const Vector& r, const Vector& u) const {
    double sum = 0;
    for (const double x : r) sum += 2 * scale_ * scale_ * (std::hypot(1, x / scale_) - 1);
    for (const double x : u) sum += scale_ * scale_ * x * x;
    return sum;
  }

  // Does one round: finds a step that lowers the cost. Returns false if there is none, at the minimum.
  bool improve() {
    const std::vector<Vector> slopes = derivatives();
    for (; damping_ < 1e9; damping_ *= 8) {
      Vector to = at_;
      const Vector step = solve(slopes);
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = clamped(i, at_[i] + step[i]);
      Vector r = evaluate(to);
      const double c = cost(r, to);
      if (c >= cost_) continue;
      const bool little = cost_ - c < 1e-6 * cost_;
      at_ = std::move(to), found_ = std::move(r), cost_ = c;
      damping_ = std::max(1e-6, damping_ / 8);
      return !little;
    }
    return false;
  }

  std::vector<Vector> derivatives() {
    constexpr double kStep = 0.02;
    std::vector<Vector> slopes;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      Vector beside = at_;
      beside[i] = clamped(i, at_[i] + kStep);
      if (beside[i] == at_[i]) beside[i] = clamped(i, at_[i] - kStep);
      Vector slope = evaluate(beside);
      for (std::size_t k = 0; k < slope.size(); ++k) slope[k] = (slope[k] - found_[k]) / (beside[i] - at_[i]);
      slopes.push_back(std::move(slope));
    }
    return slopes;
  }

  // Solves the damped normal equations, which include the priors.
  Vector solve(const std::vector<Vector>& slopes) const {
    const std::size_t n = at_.size();
    std::vector<Vector> a(n, Vector(n + 1, 0.0));
    for (std::size_t k = 0; k < found_.size(); ++k) {
      const double weight = 1 / std::hypot(1, found_[k] / scale_);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) a[i][j] += weight * slopes[i][k] * slopes[j][k];
        a[i][n] -= weight * slopes[i][k] * found_[k];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      a[i][i] = (a[i][i] + scale_ * scale_) * (1 + damping_);
      a[i][n] -= scale_ * scale_ * at_[i];
    }
    return eliminate(std::move(a));
  }

  // Gaussian elimination with the largest pivot of each column.
  static Vector eliminate(std::vector<Vector> a) {
    const std::size_t n = a.size();
    for (std::size_t c = 0; c < n; ++c) {
      std::size_t pivot = c;
      for (std::size_t r = c; r < n; ++r)
        if (std::abs(a[r][c]) > std::abs(a[pivot][c])) pivot = r;
      std::swap(a[c], a[pivot]);
      for (std::size_t r = 0; r < n; ++r) {
        if (r == c) continue;
        const double by = a[r][c] / a[c][c];
        for (std::size_t k = c; k <= n; ++k) a[r][k] -= by * a[c][k];
      }
    }
    Vector x;
    for (std::size_t i = 0; i < n; ++i) x.push_back(a[i][n] / a[i][i]);
    return x;
  }

  std::span<const Unknown> unknowns_;
  const std::function<Vector(std::span<const double>)>& residuals_;
  double scale_;
  Vector at_, found_;
  double cost_ = 0, damping_ = 1e-2;
  int evaluations_ = 0;
};

}  // namespace

Fitted least_squares(std::span<const Unknown> unknowns,
                     const std::function<std::vector<double>(std::span<const double>)>& residuals,
                     const LeastSquaresOptions& options) {
  return Fit(unknowns, residuals, options).result();
}

}  // namespace hyperrun
