// The exchange of tensors between ports of sub-models (submodel.h) with any layouts. The receiving devices
// fetch from the HBM of the devices that have the tensor. The latter take no part, and may compute meanwhile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// One side of an exchange.
struct PortSide {
  const Plan* plan = nullptr;  // a plan with final offsets
  std::vector<int> ranks;      // the plan's device d is rank ranks[d]
  std::string port;
  // The number of slots as which the port is viewed; 0: its own. Another number divides the port into more
  // slots of fewer items, and requires that every device has the whole port.
  std::int64_t slots = 0;
  std::vector<int> only;        // the ranks that take part; empty: all
  std::int64_t first_item = 0;  // the index of the first item of these ranks

  PortSide gradient() const {
    PortSide side = *this;
    side.port += ".grad";
    return side;
  }
};

struct PortMove {
  std::string program;
  PortSide from, to;
};

// A plan in which every rank is a role, with a Program for each move. The receiving ranks run it; the
// invocation names the slot. `above` is the end of all state, by rank.
Plan compile_port_exchange(const std::vector<PortMove>& moves, const std::vector<TierBytes>& above);

// The port of this name, from the first role that has it.
const StateTensor& port_of(const Plan& plan, std::string_view name);

}  // namespace hyperrun
