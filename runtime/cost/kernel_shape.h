// The shape by which a machine's table of kernels knows an instruction, or a fusion group.
#pragma once

#include <optional>
#include <span>

#include "runtime/ir/kernel_table.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Products of a group are one product, of one operand times several. nullopt: no table knows such a kernel.
std::optional<KernelShape> kernel_shape(std::span<const Instr* const> kernel);

}  // namespace hyperrun
