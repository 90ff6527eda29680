#pragma once

#include <string>

#include "runtime/ir/instr.h"
#include "runtime/ir/mesh.h"

namespace hyperrun {

// "Gemm trans_a=yes m=2048 n=1664 k=4096": the op with its fields that are not as usual, mostly zero.
std::string words_of(const InstrOp& op, const Mesh& mesh);

}  // namespace hyperrun
