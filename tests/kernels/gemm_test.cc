#include "runtime/device/kernels/gemm.h"

#include <algorithm>
#include <limits>

#include "runtime/device/kernels/gemv.h"
#include "runtime/device/kernels/packed_gemm.h"
#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

using kernels::Trans;

struct Case {
  std::int64_t m, n, k;
};

// Leading dimensions are larger than the rows; the numbers between the rows must stay.
void expect_product(auto& product, Trans ta, Trans tb, const Case& c, float beta) {
  const bool at = ta == Trans::kYes, bt = tb == Trans::kYes;
  const std::int64_t lda = (at ? c.m : c.k) + 3, ldb = (bt ? c.k : c.n) + 2, ldc = c.n + 1;
  const Floats a = values((at ? c.k : c.m) * lda, 1), b = values((bt ? c.n : c.k) * ldb, 2);
  Floats out = values(c.m * ldc, 3);
  Doubles expected = to_double(out);
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = beta == 0 ? 0 : expected[i * ldc + j];
      for (std::int64_t p = 0; p < c.k; ++p) {
        sum += static_cast<double>(a[at ? p * lda + i : i * lda + p]) * b[bt ? j * ldb + p : p * ldb + j];
      }
      expected[i * ldc + j] = sum;
    }
    if (beta == 0) std::fill_n(out.begin() + i * ldc, c.n, std::numeric_limits<float>::quiet_NaN());
  }
  product(ta, tb, c.m, c.n, c.k, a.data(), lda, b.data(), ldb, beta, out.data(), ldc);
  EXPECT_LT(relative_error(out, expected), kRoundOff)
      << c.m << " x " << c.n << " x " << c.k << " transposed " << at << bt << " beta " << beta;
}

TEST(Gemm, AllTransposesAndStrides) {
  for (const Case& c :
       {Case{5, 7, 3}, {33, 17, 65}, {2, 1, 9}, {1, 19, 23}, {1, 1, 1}, {4, 6, 0}, {1, 5, 0}}) {
    for (const Trans ta : {Trans::kNo, Trans::kYes}) {
      for (const Trans tb : {Trans::kNo, Trans::kYes}) {
        for (const float beta : {0.0F, 1.0F}) expect_product(kernels::gemm, ta, tb, c, beta);
      }
    }
  }
}

// Computes rows from `first` on of a product of `most` rows, alone: rows of a tile, say, or of one request in
// a batch.
void expect_bits_of_whole(auto& product, Trans ta, Trans tb, const Case& c, float beta, std::int64_t first,
                          std::int64_t rows) {
  const std::int64_t lda = ta == Trans::kYes ? c.m : c.k, ldb = tb == Trans::kYes ? c.k : c.n;
  const Floats a = values(c.m * c.k, 1), b = values(c.k * c.n, 2);
  Floats whole = values(c.m * c.n, 3);
  Floats some(whole.begin() + first * c.n, whole.begin() + (first + rows) * c.n);
  product(ta, tb, c.m, c.n, c.k, a.data(), lda, b.data(), ldb, beta, whole.data(), c.n);
  product(ta, tb, rows, c.n, c.k, a.data() + first * (ta == Trans::kYes ? 1 : lda), lda, b.data(), ldb, beta,
          some.data(), c.n);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), whole.begin() + first * c.n))
      << rows << " of " << c.m << " rows, " << c.n << " x " << c.k << " transposed " << (ta == Trans::kYes)
      << (tb == Trans::kYes) << " beta " << beta;
}

// Sizes with fewer columns than a vector, and more than a panel; one depth and several.
void expect_rows_keep_their_bits(auto& product) {
  constexpr std::int64_t most = 61;
  for (const Case& c : {Case{most, 8, 64}, {most, 11, 530}, {most, 24, 64}, {most, 70, 530}}) {
    for (const Trans ta : {Trans::kNo, Trans::kYes}) {
      for (const Trans tb : {Trans::kNo, Trans::kYes}) {
        for (const float beta : {0.0F, 1.0F}) {
          for (std::int64_t rows = 2; rows < 31; ++rows)
            expect_bits_of_whole(product, ta, tb, c, beta, most - 2 * rows, rows);
        }
      }
    }
  }
}

TEST(Gemm, RowsKeepTheirBitsHoweverManyThereAre) {
  if (!kernels::packed_gemm_pays()) GTEST_SKIP() << "OpenBLAS' vectors are as wide as this processor's";
  expect_rows_keep_their_bits(kernels::gemm);
}

class PackedGemm : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(PackedGemm);

// Sizes around the edges of strips (6 rows), panels (64 columns), depth (512, or 32 in place, for fewer than
// 24 rows) and blocks (516 rows), and with fewer than 12 columns, which are transposed, 256 rows at a time.
TEST_P(PackedGemm, AllTransposesAndStrides) {
  for (const Case& c : {Case{1, 1, 1},
                        {6, 64, 4},
                        {13, 130, 515},
                        {7, 67, 1033},
                        {523, 35, 6},
                        {12, 15, 512},
                        {23, 66, 65},
                        {24, 66, 65},
                        {2, 3, 33},
                        {24, 11, 40},
                        {259, 9, 70},
                        {516, 1, 20}}) {
    for (const Trans ta : {Trans::kNo, Trans::kYes}) {
      for (const Trans tb : {Trans::kNo, Trans::kYes}) {
        for (const float beta : {0.0F, 1.0F}) expect_product(kernels::packed_gemm, ta, tb, c, beta);
      }
    }
  }
}

TEST_P(PackedGemm, RowsKeepTheirBitsHoweverManyThereAre) {
  expect_rows_keep_their_bits(kernels::packed_gemm);
}

TEST_P(PackedGemm, ASliceHasTheBitsOfTheWhole) {
  constexpr std::int64_t m = 40, n = 150, k = 300, row = 9, rows = 17, col = 70, cols = 75;
  const Floats a = values(m * k, 1), b = values(k * n, 2);
  Floats whole(m * n), slice(rows * cols);
  kernels::packed_gemm(Trans::kNo, Trans::kNo, m, n, k, a.data(), k, b.data(), n, 0, whole.data(), n);
  kernels::packed_gemm(Trans::kNo, Trans::kNo, rows, cols, k, a.data() + row * k, k, b.data() + col, n, 0,
                       slice.data(), cols);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j)
      ASSERT_EQ(slice[i * cols + j], whole[(row + i) * n + col + j]) << i << ' ' << j;
  }
}

class Gemv : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(Gemv);

void one_row(Trans, Trans tb, std::int64_t, std::int64_t n, std::int64_t k, const float* a, std::int64_t,
             const float* b, std::int64_t ldb, float beta, float* c, std::int64_t) {
  kernels::gemv(tb, n, k, a, b, ldb, beta != 0.0F, c);
}

// Sizes around the edges of vectors (4, 8 or 16 floats), of 16 or 8 rows and of 8 vectors of columns.
TEST_P(Gemv, BothOrientationsAndTails) {
  for (const std::int64_t n : {1, 3, 7, 8, 9, 17, 63, 64, 65, 127, 129, 300}) {
    for (const std::int64_t k : {1, 2, 5, 15, 16, 17, 33, 64, 257}) {
      if (k > 16 * n) continue;  // a single sum may come near 0, where its rounding is large
      for (const Trans tb : {Trans::kNo, Trans::kYes}) {
        for (const float beta : {0.0F, 1.0F}) expect_product(one_row, Trans::kNo, tb, {1, n, k}, beta);
      }
    }
  }
}

TEST_P(Gemv, ASliceHasTheBitsOfTheWhole) {
  constexpr std::int64_t n = 150, k = 70, from = 3, count = 61;
  const Floats a = values(k, 1), b = values(n * k, 2);
  for (const Trans tb : {Trans::kNo, Trans::kYes}) {
    const std::int64_t ldb = tb == Trans::kYes ? k : n;
    Floats whole(n), slice(count);
    kernels::gemv(tb, n, k, a.data(), b.data(), ldb, false, whole.data());
    kernels::gemv(tb, count, k, a.data(), b.data() + from * (tb == Trans::kYes ? k : 1), ldb, false,
                  slice.data());
    for (std::int64_t j = 0; j < count; ++j) ASSERT_EQ(slice[j], whole[from + j]) << j;
  }
}

// A wrong element of B shows in its element of c.
TEST_P(Gemv, AWrongElementIsSeen) {
  constexpr std::int64_t n = 37, k = 53, row = 36, at = 52;
  const Floats a = values(k, 1);
  Floats b = values(n * k, 2), right(n), wrong(n);
  kernels::gemv(Trans::kYes, n, k, a.data(), b.data(), k, false, right.data());
  b[row * k + at] += 1;
  kernels::gemv(Trans::kYes, n, k, a.data(), b.data(), k, false, wrong.data());
  for (std::int64_t j = 0; j < n; ++j) EXPECT_EQ(wrong[j] == right[j], j != row) << j;
  EXPECT_NEAR(wrong[row] - right[row], a[at], 1e-5);
}

TEST(Gemm, SameBitsEachTime) {
  const Floats a = values(64 * 96, 1), b = values(96 * 80, 2);
  Floats first(64 * 80), second(64 * 80);
  for (Floats* c : {&first, &second}) {
    kernels::gemm(Trans::kNo, Trans::kNo, 64, 80, 96, a.data(), 96, b.data(), 80, 0, c->data(), 80);
  }
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace hyperrun::testing
