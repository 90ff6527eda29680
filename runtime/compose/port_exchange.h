// From port to port (submodel.h): what one sub-model gives on its way to another, whatever their layouts. Who
// needs it fetches it from the HBM of those who have it, in which they take no part: they may compute
// something else meanwhile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// One end of a way.
struct PortSide {
  const Plan* plan = nullptr;  // in its place
  std::vector<int> ranks;      // its device d is rank ranks[d]
  std::string port;
  // As which it is seen: 0: [slots, items, ...] as it is; else, of a port that is whole on its devices, as so
  // many slots of fewer items.
  std::int64_t slots = 0;
  // On these ranks alone, none: on all; and items count from there on.
  std::vector<int> only;
  std::int64_t first_item = 0;

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

// Of every rank a role, with a Program for each move, which those run that it goes to; the slot is the
// invocation's. `above`: by rank, the end of all state that lies there.
Plan compile_port_exchange(const std::vector<PortMove>& moves, const std::vector<TierBytes>& above);

// Of the first role that has it.
const StateTensor& port_of(const Plan& plan, std::string_view name);

}  // namespace hyperrun
