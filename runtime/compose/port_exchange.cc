#include "runtime/compose/port_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/events.h"
#include "runtime/compile/place.h"
#include "runtime/compose/boxes.h"

namespace hyperrun {
namespace {

// The part of a port on one rank.
struct Part {
  const StateTensor* port = nullptr;  // the state tensor, with all slots
  StateTensor slot;                   // one slot as a tensor of its own
  std::int64_t slots = 1;
  int rank = 0;
  Box box;
};

StateTensor slot_of(const StateTensor& port, std::int64_t slots) {
  StateTensor slot = port;
  HR_CHECK(port.shape[0] * port.shape[1] % slots == 0, port.name + " has no such slots");
  HR_CHECK(slots == port.shape[0] || port.layout.dims[1].empty(), port.name + " is split");
  slot.shape.erase(slot.shape.begin());
  slot.shape[0] = port.shape[0] * port.shape[1] / slots;
  slot.layout.dims.erase(slot.layout.dims.begin());
  slot.bytes = port.bytes / slots;
  return slot;
}

std::vector<Part> parts_of(const PortSide& side) {
  std::vector<Part> parts;
  for (std::int64_t d = 0; d < side.plan->mesh.devices(); ++d) {
    const int rank = side.ranks[static_cast<std::size_t>(d)];
    if (!side.only.empty() && std::ranges::find(side.only, rank) == side.only.end()) continue;
    for (const StateTensor& t : side.plan->of_device(d).state) {
      if (t.name != side.port) continue;
      const std::int64_t slots = side.slots > 0 ? side.slots : t.shape[0];
      Part part{&t, slot_of(t, slots), slots, rank, {}};
      part.box = box_of(part.slot, side.plan->mesh, static_cast<int>(d));
      part.box.first[0] -= side.first_item;
      parts.push_back(std::move(part));
    }
  }
  HR_CHECK(!parts.empty(), "no device has " + side.port);
  return parts;
}

// Builds the Program with which one rank fetches its part of a port.
class FetchProgram {
 public:
  FetchProgram(const std::string& name, const Mesh& mesh, const TierBytes& above) {
    program_.name = name;
    program_.mesh = mesh;
    places_.end = places_.end_of_cache = above;
  }

  // Fetches each box of `target` from one of its holders: the rank itself if possible, else one chosen by
  // rank. Then stores all of it in the invocation's slot of the port.
  void add_fetches(const std::vector<Part>& sources, const Part& target) {
    program_.origins.push_back(target.port->name);
    const BufferId all_slots = state(target);
    const BufferId arrived = buffer("arrived", target.slot.bytes, false);
    std::map<Box, std::vector<const Part*>> holders;
    for (const Part& s : sources) holders[s.box].push_back(&s);
    for (const auto& [box, parts] : holders)
      if (const std::optional<Box> both = common(box, target.box))
        fetch(nearest(parts, target.rank), target, *both, arrived);
    const Operand port{all_slots, {}, target.port->bytes, target.port->dtype},
        slot{arrived, {}, target.slot.bytes, target.port->dtype};
    add(instr::StorePort{target.slots, target.slot.bytes.value / size_of(target.port->dtype)},
        StreamKind::kVector, {slot, port}, port);
  }

  Program finish() {
    place_buffers(program_, places_);
    add_events(program_);
    verify(program_);
    return std::move(program_);
  }

 private:
  static const Part& nearest(const std::vector<const Part*>& parts, int rank) {
    const auto own = std::ranges::find(parts, rank, [](const Part* p) { return p->rank; });
    return own != parts.end() ? **own : *parts[static_cast<std::size_t>(rank) % parts.size()];
  }

  void fetch(const Part& source, const Part& target, const Box& what, BufferId arrived) {
    const DType dtype = target.port->dtype;
    HR_CHECK(source.port->dtype == dtype, "ports of two types");
    const Region there = region(arrived, dtype, target.box, what), here = region({}, dtype, source.box, what);
    instr::Fetch f;
    f.to = there.strides;
    f.from_rank = source.rank;
    f.to_rank = target.rank;
    f.offset = source.port->offset.value + here.operand.offset.value;
    f.slot = source.slot.bytes.value;
    f.size = what.size;
    f.from = here.strides;
    add(std::move(f), StreamKind::kDmaIn, {}, there.operand);
  }

  BufferId buffer(std::string name, Bytes bytes, bool is_state) {
    Buffer b;
    b.name = std::move(name);
    b.bytes = bytes;
    b.category = Category::kCommunication;
    b.state = is_state;
    program_.buffers.push_back(std::move(b));
    return BufferId(std::ssize(program_.buffers) - 1);
  }

  BufferId state(const Part& part) {
    places_.places[part.port->name] = {part.port->tier, part.port->offset};
    return buffer(part.port->name, part.port->bytes, true);
  }

  void add(InstrOp op, StreamKind stream, std::vector<Operand> in, const Operand& out) {
    Instr i;
    i.op = std::move(op);
    i.stream = stream;
    i.in = std::move(in);
    i.out = {out};
    i.origin = static_cast<std::int32_t>(program_.origins.size()) - 1;
    program_.instrs.push_back(std::move(i));
  }

  Program program_;
  StatePlaces places_;
};

}  // namespace

Plan compile_port_exchange(const std::vector<PortMove>& moves, const std::vector<TierBytes>& above) {
  Plan plan;
  plan.mesh = {{{"rank", static_cast<std::int32_t>(above.size())}}};
  plan.role_axes = {0};
  plan.roles.resize(above.size());
  for (const PortMove& move : moves) {
    std::vector<FetchProgram> ranks;
    for (const TierBytes& end : above) ranks.emplace_back(move.program, plan.mesh, end);
    const std::vector<Part> sources = parts_of(move.from);
    for (const Part& target : parts_of(move.to))
      ranks[static_cast<std::size_t>(target.rank)].add_fetches(sources, target);
    for (std::size_t r = 0; r < ranks.size(); ++r) plan.roles[r].programs.push_back(ranks[r].finish());
  }
  verify(plan);
  return plan;
}

const StateTensor& port_of(const Plan& plan, std::string_view name) {
  for (const Role& role : plan.roles)
    for (const StateTensor& t : role.state)
      if (t.name == name) return t;
  throw Error(Code::kInternal, fmt::format("no port {}", name));
}

}  // namespace hyperrun
