// Token embedding, whole or with the vocabulary split. This device holds rows [vocab_offset, vocab_offset +
// vocab_local) of the table.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

// Sets out[r] = table[ids[r] - vocab_offset], or zero if the device does not hold the id. ids [rows], table
// [vocab_local, d], out [rows, d], of one format.
void embedding(std::int64_t rows, std::int64_t d, const std::int32_t* ids, ConstArray table,
               std::int64_t vocab_local, std::int64_t vocab_offset, Array out);

// Adds dout[r] to dtable[ids[r] - vocab_offset], in the order of the rows; dtable is cleared first unless
// `accumulate`.
void embedding_backward(std::int64_t rows, std::int64_t d, const std::int32_t* ids, ConstArray dout,
                        std::int64_t vocab_local, std::int64_t vocab_offset, bool accumulate, float* dtable);

}  // namespace hyperrun::kernels
