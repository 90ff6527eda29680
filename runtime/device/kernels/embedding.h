// Token embedding, whole or with the vocabulary split: this device holds rows
// [vocab_offset, vocab_offset + vocab_local) of the table.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

// out[r] = table[ids[r] - vocab_offset], or zero when the id is not held here. ids [rows],
// table [vocab_local, d], out [rows, d], of one format.
void embedding(std::int64_t rows, std::int64_t d, const std::int32_t* ids, ConstArray table,
               std::int64_t vocab_local, std::int64_t vocab_offset, Array out);

// dtable[ids[r] - vocab_offset] += dout[r] in the order of the rows; dtable is cleared first unless
// `accumulate`.
void embedding_backward(std::int64_t rows, std::int64_t d, const std::int32_t* ids, ConstArray dout,
                        std::int64_t vocab_local, std::int64_t vocab_offset, bool accumulate, float* dtable);

}  // namespace hyperrun::kernels
