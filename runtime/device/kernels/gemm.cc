#include "runtime/device/kernels/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/device/kernels/gemv.h"
#include "runtime/device/kernels/mixed_gemm.h"
#include "runtime/device/kernels/packed_gemm.h"

namespace hyperrun::kernels {
namespace {

int to_blas(std::int64_t v) {
  HR_CHECK(v >= 0 && v <= std::numeric_limits<int>::max(), "a size is beyond OpenBLAS' 31 bits");
  return static_cast<int>(v);
}

CBLAS_TRANSPOSE to_blas(Trans t) { return t == Trans::kYes ? CblasTrans : CblasNoTrans; }

// True if OpenBLAS' kernels for this processor use vectors of fewer floats; false for a core that is not
// listed.
bool openblas_vectors_narrower_than(std::int64_t lanes) {
  const std::string_view core = openblas_get_corename();
  for (const std::string_view sse : {"Prescott", "Core2", "Penryn", "Nehalem", "Barcelona"})
    if (core == sse) return lanes > 4;
  for (const std::string_view avx :
       {"Sandybridge", "Bulldozer", "Piledriver", "Steamroller", "Excavator", "Haswell", "Zen"})
    if (core == avx) return lanes > 8;
  return false;
}

void float_gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  if (k == 0) {
    for (std::int64_t row = 0; row < m && beta == 0.0F; ++row) std::fill_n(c + row * ldc, n, 0.0F);
    return;
  }
  if (m == 1 && (trans_a == Trans::kNo || lda == 1)) {
    gemv(trans_b, n, k, a, b, ldb, beta != 0.0F, c);
    return;
  }
  if (packed_gemm_pays()) {
    packed_gemm(trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
    return;
  }
  cblas_sgemm(CblasRowMajor, to_blas(trans_a), to_blas(trans_b), to_blas(m), to_blas(n), to_blas(k), 1.0F, a,
              to_blas(lda), b, to_blas(ldb), beta, c, to_blas(ldc));
}

}  // namespace

// OpenBLAS does not know every processor (a new one may get the kernels of an old one, at half the rate), and
// a user may have set OPENBLAS_CORETYPE. If its vectors are narrower than the processor's, our kernels are
// faster, for few rows and columns as well. Besides, rows keep their bits for any number of rows, which
// OpenBLAS' kernels do not guarantee.
bool packed_gemm_pays() {
  static const bool wider = openblas_vectors_narrower_than(packed_gemm_lanes());
  return wider;
}

void gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, ConstArray a,
          std::int64_t lda, ConstArray b, std::int64_t ldb, float beta, Array c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  const auto is_float = [](DType t) { return t == DType::kF32; };
  if (is_float(a.dtype()) && is_float(b.dtype()) && is_float(c.dtype()))
    float_gemm(trans_a, trans_b, m, n, k, a.as<float>(), lda, b.as<float>(), ldb, beta, c.as<float>(), ldc);
  else
    mixed_gemm(trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace hyperrun::kernels
