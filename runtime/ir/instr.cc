#include "runtime/ir/instr.h"

namespace hyperrun {

InstrOp::InstrOp() = default;
InstrOp::InstrOp(const InstrOp&) = default;
InstrOp::InstrOp(InstrOp&&) noexcept = default;
InstrOp& InstrOp::operator=(const InstrOp&) = default;
InstrOp& InstrOp::operator=(InstrOp&&) noexcept = default;
InstrOp::~InstrOp() = default;
bool InstrOp::operator==(const InstrOp& other) const {
  return static_cast<const InstrOpKinds&>(*this) == static_cast<const InstrOpKinds&>(other);
}

}  // namespace hyperrun
