#pragma once

#include <string>

#include "runtime/ir/instr.h"
#include "runtime/ir/mesh.h"

namespace hyperrun {

// "Gemm trans_a=yes m=2048 n=1664 k=4096": the op's name, and the fields that differ from their usual value.
std::string describe(const InstrOp& op, const Mesh& mesh);

}  // namespace hyperrun
