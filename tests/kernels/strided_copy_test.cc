#include "runtime/device/kernels/strided_copy.h"

#include <numeric>

#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

using Sizes = std::vector<std::int64_t>;

template <class T>
void expect_copy(const Sizes& shape, const Sizes& from_strides, const Sizes& to_strides) {
  const auto extent = [&](const Sizes& strides) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
    return static_cast<std::size_t>(last + 2);
  };
  std::vector<T> from(extent(from_strides));
  std::iota(from.begin(), from.end(), T{1});
  std::vector<T> to(extent(to_strides)), expected = to;
  const std::int64_t count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t flat = 0; flat < count; ++flat) {
    std::int64_t rest = flat, f = 0, t = 0;
    for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) {
      f += rest % shape[i] * from_strides[i];
      t += rest % shape[i] * to_strides[i];
    }
    expected[t] = from[f];
  }
  kernels::strided_copy(sizeof(T), shape, from.data(), from_strides, to.data(), to_strides);
  EXPECT_EQ(to, expected) << ::testing::PrintToString(shape) << ::testing::PrintToString(from_strides);
}

TEST(StridedCopy, SlicesTransposesBroadcasts) {
  for (const auto& [shape, from, to] : std::vector<std::array<Sizes, 3>>{
           {Sizes{}, Sizes{}, Sizes{}},
           {Sizes{7}, Sizes{1}, Sizes{1}},
           {Sizes{7}, Sizes{3}, Sizes{2}},
           {Sizes{4, 6}, Sizes{6, 1}, Sizes{6, 1}},                       // one run
           {Sizes{4, 6}, Sizes{10, 1}, Sizes{6, 1}},                      // slice
           {Sizes{4, 6}, Sizes{1, 4}, Sizes{6, 1}},                       // transpose
           {Sizes{4, 6}, Sizes{6, 1}, Sizes{1, 4}},                       // and back
           {Sizes{5, 3}, Sizes{0, 1}, Sizes{3, 1}},                       // broadcast
           {Sizes{2, 1, 3, 4}, Sizes{12, 99, 4, 1}, Sizes{24, 5, 8, 1}},  // a dimension of one
           {Sizes{2, 3, 4, 5, 6}, Sizes{360, 120, 30, 6, 1}, Sizes{1, 2, 6, 24, 120}},
           {Sizes{2, 3, 2, 3, 2}, Sizes{1000, 200, 50, 10, 1}, Sizes{36, 12, 6, 2, 1}},
       }) {
    expect_copy<std::uint32_t>(shape, from, to);
    expect_copy<std::uint16_t>(shape, from, to);
  }
}

TEST(StridedCopy, NothingToCopy) {
  std::uint32_t to = 7;
  const Sizes shape{3, 0}, strides{1, 1};
  kernels::strided_copy(4, shape, nullptr, strides, &to, strides);
  EXPECT_EQ(to, 7U);
}

TEST(SelectRow, TakesThePositionWhereItIsHeld) {
  const std::int64_t batch = 2, local = 3, d = 5, offset = 6;
  const Floats x = values(batch * local * d, 1);
  Floats out(batch * d);
  kernels::select_row(batch, local, d, x.data(), offset, 7, out.data());
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < d; ++i) ASSERT_EQ(out[b * d + i], x[(b * local + 1) * d + i]);
  }
  for (const std::int64_t elsewhere : {5, 9}) {
    out.assign(out.size(), 1.0F);
    kernels::select_row(batch, local, d, x.data(), offset, elsewhere, out.data());
    ASSERT_EQ(out, Floats(out.size(), 0.0F));
  }
}

}  // namespace
}  // namespace hyperrun::testing
