#include "runtime/device/kernels/join.h"

#include <algorithm>

namespace hyperrun::kernels {
namespace {

template <Number T>
void join_rows(std::int64_t rows, std::int64_t repeat, std::int64_t left, std::int64_t right, const T* a,
               const T* b, T* y) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < repeat; ++i, y += left + right) {
      std::copy_n(a + (row * repeat + i) * left, left, y);
      std::copy_n(b + row * right, right, y + left);
    }
}

template <Number T>
void part_rows(std::int64_t rows, std::int64_t repeat, std::int64_t left, std::int64_t right, const T* dy,
               T* da, T* db) {
  for (std::int64_t row = 0; row < rows; ++row, dy += repeat * (left + right)) {
    for (std::int64_t i = 0; i < repeat; ++i)
      std::copy_n(dy + i * (left + right), left, da + (row * repeat + i) * left);
    for (std::int64_t c = 0; c < right; ++c) {
      float sum = 0;
      for (std::int64_t i = 0; i < repeat; ++i) sum += to_float(dy[i * (left + right) + left + c]);
      db[row * right + c] = rounded<T>(sum);
    }
  }
}

}  // namespace

void join(std::int64_t rows, std::int64_t repeat, std::int64_t left, std::int64_t right, ConstArray a,
          ConstArray b, Array y) {
  typed(y.dtype(),
        [&]<class T>(T) { join_rows(rows, repeat, left, right, a.as<T>(), b.as<T>(), y.as<T>()); });
}

void join_backward(std::int64_t rows, std::int64_t repeat, std::int64_t left, std::int64_t right,
                   ConstArray dy, Array da, Array db) {
  typed(dy.dtype(),
        [&]<class T>(T) { part_rows(rows, repeat, left, right, dy.as<T>(), da.as<T>(), db.as<T>()); });
}

}  // namespace hyperrun::kernels
