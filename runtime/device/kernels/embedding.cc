#include "runtime/device/kernels/embedding.h"

#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::kernels {

void embedding(std::int64_t rows, std::int64_t d, const std::int32_t* ids, ConstArray table,
               std::int64_t vocab_local, std::int64_t vocab_offset, Array out) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t line = ids[row] - vocab_offset;
    if (line >= 0 && line < vocab_local) {
      copy(d, table + line * d, out + row * d);
    } else {
      clear(d, out + row * d);
    }
  }
}

void embedding_backward(std::int64_t rows, std::int64_t d, const std::int32_t* ids, ConstArray dout,
                        std::int64_t vocab_local, std::int64_t vocab_offset, bool accumulate, float* dtable) {
  if (!accumulate) clear(vocab_local * d, dtable);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t line = ids[row] - vocab_offset;
    if (line >= 0 && line < vocab_local) kernels::accumulate(d, dout + row * d, dtable + line * d);
  }
}

}  // namespace hyperrun::kernels
