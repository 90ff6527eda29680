// Norms, rotary embedding, GELU, SwiGLU and token embedding: values against double, gradients against finite
// differences.
#include <cmath>
#include <complex>
#include <numbers>

#include "runtime/device/kernels/embedding.h"
#include "runtime/device/kernels/gelu.h"
#include "runtime/device/kernels/join.h"
#include "runtime/device/kernels/norm.h"
#include "runtime/device/kernels/rope.h"
#include "runtime/device/kernels/swiglu.h"
#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

class Layer : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(Layer);

constexpr double kEps = 1e-5;

// The norm is centered if there is a bias.
Doubles norm_reference(std::int64_t rows, std::int64_t d, const Doubles& x, const Doubles& w,
                       const Doubles& bias = {}) {
  Doubles y(x.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    double squares = 0, mean = 0;
    for (std::int64_t i = 0; i < d && !bias.empty(); ++i) mean += x[r * d + i] / static_cast<double>(d);
    for (std::int64_t i = 0; i < d; ++i) squares += std::pow(x[r * d + i] - mean, 2);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(d) + kEps);
    for (std::int64_t i = 0; i < d; ++i)
      y[r * d + i] = (x[r * d + i] - mean) * rstd * w[i] + (bias.empty() ? 0 : bias[i]);
  }
  return y;
}

// A norm and the sums over its whole rows; centered with a bias.
struct Norm {
  kernels::NormShape shape;
  Floats x, w, bias, sums, squares;

  Norm(std::int64_t rows, std::int64_t d, Floats of, bool centered)
      : shape{.rows = rows, .width = d, .whole = d, .eps = static_cast<float>(kEps)},
        x(std::move(of)),
        w(values(d, 2)),
        bias(centered ? values(d, 6) : Floats()),
        sums(centered ? rows : 0),
        squares(rows) {
    if (centered) kernels::row_sums(rows, d, x.data(), sums.data());
    kernels::row_squares(shape, x.data(), given(sums), squares.data());
  }

  static const float* given(const Floats& v) { return v.empty() ? nullptr : v.data(); }

  Floats forward() const {
    Floats y(x.size());
    kernels::norm(shape, x.data(), w.data(), squares.data(), given(sums), given(bias), y.data());
    return y;
  }
  void backward(const Floats& dy, const float* addend, Floats& dx, Floats& dw, bool accumulate) const {
    Floats dots(shape.rows), dot_sums(sums.size());
    kernels::norm_dots(shape, dy.data(), x.data(), w.data(), given(sums), dots.data(),
                       sums.empty() ? nullptr : dot_sums.data());
    kernels::norm_backward(shape, dy.data(), x.data(), w.data(), {squares.data(), dots.data()},
                           {given(sums), given(dot_sums)}, addend, dx.data(), dw.data(), accumulate);
  }
};

TEST_P(Layer, NormAndItsGradients) {
  for (const bool centered : {false, true}) {
    for (const std::int64_t d : {1, 7, 16, 67, 128}) {
      if (centered && d == 1) continue;  // nothing is left without the mean
      const std::int64_t rows = 3;
      const Norm n(rows, d, values(rows * d, 1), centered);
      const Doubles x = to_double(n.x), w = to_double(n.w), bias = to_double(n.bias);
      EXPECT_LT(relative_error(n.forward(), norm_reference(rows, d, x, w, bias)), kRoundOff) << d;

      const Floats dy = values(rows * d, 3), residual = values(rows * d, 4), before = values(d, 5);
      Floats dx = residual, dw = before;
      n.backward(dy, dx.data(), dx, dw, true);
      Doubles ex = numeric_gradient(
          [&](const Doubles& at) { return dot(norm_reference(rows, d, at, w, bias), to_double(dy)); }, x);
      Doubles ew = numeric_gradient(
          [&](const Doubles& at) { return dot(norm_reference(rows, d, x, at, bias), to_double(dy)); }, w);
      for (std::size_t i = 0; i < ex.size(); ++i) ex[i] += residual[i];
      for (std::size_t i = 0; i < ew.size(); ++i) ew[i] += before[i];
      EXPECT_LT(relative_error(dx, ex), kRoundOff) << d;
      EXPECT_LT(relative_error(dw, ew), kRoundOff) << d;
    }
  }
}

// A mean a thousand times as large as the rest costs the roundings of its own sum. A row of 300 has few of
// them in a line for any width of a vector: each 1000 x 2^-24. The mean of squares less the squared mean
// would lose 10^6 x 2^-24.
TEST_P(Layer, ACenteredNormOfRowsFarFromZero) {
  const std::int64_t rows = 3, d = 300;
  Floats x = values(rows * d, 1);
  for (float& v : x) v += 1000;
  const Norm n(rows, d, x, true);
  constexpr double kRoundings = 3;
  EXPECT_LT(
      relative_error(n.forward(), norm_reference(rows, d, to_double(n.x), to_double(n.w), to_double(n.bias))),
      kRoundings * 1000 * 0x1p-24);
}

// The sums of two devices add up to those of one.
TEST_P(Layer, NormOfARowInParts) {
  const std::int64_t d = 96, half = d / 2;
  const Norm whole(1, d, values(d, 1), true);
  Floats sums(1), squares(1);
  for (const std::int64_t at : {std::int64_t{0}, half}) {
    float part = 0;
    kernels::row_sums(1, half, &whole.x[at], &part);
    sums[0] += part;
  }
  for (const std::int64_t at : {std::int64_t{0}, half}) {
    float part = 0;
    kernels::row_squares({.rows = 1, .width = half, .whole = d}, &whole.x[at], sums.data(), &part);
    squares[0] += part;
  }
  Floats y(d);
  for (const std::int64_t at : {std::int64_t{0}, half})
    kernels::norm({.rows = 1, .width = half, .whole = d, .eps = static_cast<float>(kEps)}, &whole.x[at],
                  &whole.w[at], squares.data(), sums.data(), &whole.bias[at], &y[at]);
  EXPECT_LT(relative_error(y, to_double(whole.forward())), kRoundOff);
}

TEST_P(Layer, NormGradientWithoutResidualOverwrites) {
  for (const bool centered : {false, true}) {
    const std::int64_t rows = 4, d = 37;
    const Norm n(rows, d, values(rows * d, 1), centered);
    const Floats dy = values(rows * d, 3), zero(n.x.size());
    Floats with(n.x.size()), in_place = dy, dw_with(d), dw = values(d, 9);
    n.backward(dy, zero.data(), with, dw_with, true);
    n.backward(in_place, nullptr, in_place, dw, false);
    EXPECT_EQ(in_place, with);
    EXPECT_EQ(dw, dw_with);
  }
}

Doubles gelu_reference(const Doubles& x) {
  Doubles y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] =
        x[i] * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x[i] + 0.044715 * std::pow(x[i], 3)))) / 2;
  return y;
}

TEST_P(Layer, GeluAndItsGradient) {
  for (const std::int64_t n : {1, 9, 64, 83}) {
    Floats x = values(n, 1);
    const Floats dy = values(n, 3);
    for (float& v : x) v *= 3;
    Floats y = x, dx = dy;
    kernels::gelu(n, y.data(), y.data());
    EXPECT_LT(relative_error(y, gelu_reference(to_double(x))), kRoundOff) << n;
    kernels::gelu_backward(n, x.data(), dx.data(), dx.data());
    const Doubles expected = numeric_gradient(
        [&](const Doubles& at) { return dot(gelu_reference(at), to_double(dy)); }, to_double(x));
    EXPECT_LT(relative_error(dx, expected), kRoundOff) << n;
  }
  Floats extremes = {-1e4F, 1e4F}, ones = {1, 1}, slopes(2);
  kernels::gelu_backward(2, extremes.data(), ones.data(), slopes.data());
  kernels::gelu(2, extremes.data(), extremes.data());
  EXPECT_EQ(extremes, (Floats{0, 1e4F}));
  EXPECT_EQ(slopes, (Floats{0, 1}));
}

TEST_P(Layer, RopeTurnsPairsByPosition) {
  const std::int64_t batch = 2, seq = 5, heads = 3, start = 11;
  for (const std::int64_t hd : {2, 6, 32, 80}) {
    const std::int64_t rows = batch * seq, half = hd / 2, ldx = heads * hd + 5, ldy = heads * hd + 1;
    Floats table(seq * hd), y(rows * ldy, 3.0F);
    const Floats x = values(rows * ldx, 1);
    kernels::rope_table(start, seq, frequencies(hd, 10000), table.data());
    kernels::rope(kernels::Rotate::kForward, rows, seq, heads, hd, x.data(), ldx, table.data(), y.data(),
                  ldy);
    Doubles expected(y.size(), 3.0);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < half; ++i) {
          const double angle = static_cast<double>(start + r % seq) /
                               std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(hd));
          const double a = x[r * ldx + h * hd + i], b = x[r * ldx + h * hd + half + i];
          expected[r * ldy + h * hd + i] = a * std::cos(angle) - b * std::sin(angle);
          expected[r * ldy + h * hd + half + i] = b * std::cos(angle) + a * std::sin(angle);
        }
      }
    }
    EXPECT_LT(relative_error(y, expected), kRoundOff) << hd;
  }
}

// The last elements of a head are rotated, in pairs of neighbours as complex numbers; the others stay.
TEST_P(Layer, RopeTurnsNeighboursAtTheEndOfAHead) {
  const std::int64_t rows = 10, seq = 5, heads = 3;
  for (const std::int64_t turned : {2, 6, 32, 80}) {
    const std::int64_t hd = turned + 7, width = heads * hd;
    Floats table(seq * turned), y(rows * width, 3.0F);
    const Floats x = values(rows * width, 1);
    kernels::rope_table(0, seq, frequencies(turned, 10000), table.data());
    kernels::rope(kernels::Rotate::kForward, rows, seq, heads, hd, x.data(), width, table.data(), y.data(),
                  width, turned, kernels::Pairs::kNeighbours);
    Doubles expected = to_double(x);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t at = r * width + 7; at < (r + 1) * width; at += hd)
        for (std::int64_t i = 0; i < turned / 2; ++i) {
          const double angle = static_cast<double>(r % seq) *
                               std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(turned));
          const auto z = std::complex<double>(x[at + 2 * i], x[at + 2 * i + 1]) * std::polar(1.0, angle);
          expected[at + 2 * i] = z.real(), expected[at + 2 * i + 1] = z.imag();
        }
    EXPECT_LT(relative_error(y, expected), kRoundOff) << turned;
    kernels::rope(kernels::Rotate::kInverse, rows, seq, heads, hd, y.data(), width, table.data(), y.data(),
                  width, turned, kernels::Pairs::kNeighbours);
    EXPECT_LT(relative_error(y, to_double(x)), kRoundOff) << turned;
  }
}

TEST_P(Layer, JoinRepeatsItsSecondPart) {
  const std::int64_t rows = 3, repeat = 2, left = 5, right = 4, wide = left + right;
  const Floats a = values(rows * repeat * left, 1), b = values(rows * right, 2);
  Floats y(rows * repeat * wide), da(a.size(), 7.0F), db(b.size(), 7.0F);
  kernels::join(rows, repeat, left, right, a.data(), b.data(), y.data());
  for (std::int64_t i = 0; i < std::ssize(y); ++i) {
    const std::int64_t row = i / wide, c = i % wide;
    EXPECT_EQ(y[i], c < left ? a[row * left + c] : b[row / repeat * right + c - left]) << i;
  }
  kernels::join_backward(rows, repeat, left, right, y.data(), da.data(), db.data());
  EXPECT_EQ(da, a);
  for (std::size_t i = 0; i < db.size(); ++i) EXPECT_EQ(db[i], 2 * b[i]) << "once for each that repeats it";
}

// The gradient of a rotation is its inverse, which is its transpose.
TEST_P(Layer, RopeInverseInPlace) {
  const std::int64_t rows = 6, seq = 3, heads = 2, hd = 36, n = rows * heads * hd;
  Floats table(seq * hd);
  kernels::rope_table(0, seq, frequencies(hd, 500), table.data());
  const Floats x = values(n, 1);
  Floats y = x;
  for (const auto way : {kernels::Rotate::kForward, kernels::Rotate::kInverse}) {
    kernels::rope(way, rows, seq, heads, hd, y.data(), heads * hd, table.data(), y.data(), heads * hd);
    const double away = relative_error(y, to_double(x));
    EXPECT_EQ(away > 0.1, way == kernels::Rotate::kForward) << away;
  }
  EXPECT_LT(relative_error(y, to_double(x)), kRoundOff);
}

Doubles swiglu_reference(const Doubles& g, const Doubles& u) {
  Doubles h(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) h[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
  return h;
}

TEST_P(Layer, SwigluAndItsGradients) {
  for (const std::int64_t n : {1, 9, 64, 83}) {
    Floats g = values(n, 1), u = values(n, 2);
    const Floats dh = values(n, 3);
    for (float& x : g) x *= 6;
    Floats h(g.size());
    kernels::swiglu(1, n, g.data(), u.data(), n, h.data());
    EXPECT_LT(relative_error(h, swiglu_reference(to_double(g), to_double(u))), kRoundOff);
    const Doubles eg = numeric_gradient(
        [&](const Doubles& at) { return dot(swiglu_reference(at, to_double(u)), to_double(dh)); },
        to_double(g));
    const Doubles eu = numeric_gradient(
        [&](const Doubles& at) { return dot(swiglu_reference(to_double(g), at), to_double(dh)); },
        to_double(u));
    kernels::swiglu_backward(1, n, g.data(), u.data(), n, dh.data(), g.data(), u.data());
    EXPECT_LT(relative_error(g, eg), kRoundOff) << n;
    EXPECT_LT(relative_error(u, eu), kRoundOff) << n;
  }
}

TEST_P(Layer, SwigluOfFusedHalvesAndOfExtremes) {
  const std::int64_t rows = 3, cols = 21;
  const Floats fused = values(rows * 2 * cols, 1), dh = values(rows * cols, 2);
  Floats h(rows * cols), d_fused(fused.size());
  kernels::swiglu(rows, cols, fused.data(), fused.data() + cols, 2 * cols, h.data());
  kernels::swiglu_backward(rows, cols, fused.data(), fused.data() + cols, 2 * cols, dh.data(), d_fused.data(),
                           d_fused.data() + cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    Floats line(cols), dg(cols), du(cols);
    const float* g = fused.data() + r * 2 * cols;
    kernels::swiglu(1, cols, g, g + cols, cols, line.data());
    kernels::swiglu_backward(1, cols, g, g + cols, cols, dh.data() + r * cols, dg.data(), du.data());
    for (std::int64_t i = 0; i < cols; ++i) {
      ASSERT_EQ(h[r * cols + i], line[i]);
      ASSERT_EQ(d_fused[r * 2 * cols + i], dg[i]);
      ASSERT_EQ(d_fused[r * 2 * cols + cols + i], du[i]);
    }
  }
  const Floats g = {-200, 200}, u = {1, 1};
  Floats out(2);
  kernels::swiglu(1, 2, g.data(), u.data(), 2, out.data());
  EXPECT_EQ(out, (Floats{0, 200}));
}

TEST_P(Layer, EmbeddingOfAPartOfTheVocabulary) {
  const std::int64_t d = 19, local = 4, offset = 3;
  const Floats table = values(local * d, 1);
  const std::vector<std::int32_t> ids = {3, 2, 6, 7, 5, -1, 3};
  const auto rows = static_cast<std::int64_t>(ids.size());
  Floats out(rows * d, 9.0F), dtable = values(local * d, 3);
  const Floats dout = values(rows * d, 2);
  Doubles expected(local * d);
  kernels::embedding(rows, d, ids.data(), table.data(), local, offset, out.data());
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t line = ids[r] - offset;
    const bool here = line >= 0 && line < local;
    for (std::int64_t i = 0; i < d; ++i) {
      ASSERT_EQ(out[r * d + i], here ? table[line * d + i] : 0.0F);
      if (here) expected[line * d + i] += dout[r * d + i];
    }
  }
  kernels::embedding_backward(rows, d, ids.data(), dout.data(), local, offset, false, dtable.data());
  EXPECT_LT(relative_error(dtable, expected), kRoundOff);
  kernels::embedding_backward(rows, d, ids.data(), dout.data(), local, offset, true, dtable.data());
  for (double& x : expected) x *= 2;
  EXPECT_LT(relative_error(dtable, expected), kRoundOff);
}

}  // namespace
}  // namespace hyperrun::testing
