#include "runtime/device/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "collectives/group.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

Bytes end_of_state(const Role& role) {
  Bytes end{};
  for (const Program& p : role.programs)
    for (const Buffer& b : p.buffers)
      if (b.state && b.tier == Tier::kHbm) end = std::max(end, b.offset + b.bytes);
  return end;
}

// Begin of the arena's part above the state. The state of other plans lies between it and this role's.
Bytes begin_of_rest(const Role& role) {
  std::optional<Bytes> first;
  for (const Program& p : role.programs)
    for (const Buffer& b : p.buffers)
      if (!b.state && b.tier == Tier::kHbm) first = std::min(first.value_or(b.offset), b.offset);
  return std::max(end_of_state(role), first.value_or(Bytes(0)));
}

}  // namespace

Staging staging(const StateContext& c) {
  std::int64_t usable = std::int64_t{4} << 20;
  for (const Role& role : c.plan.roles)
    usable = std::min(usable, (role.peak() - begin_of_rest(role)).value / 4 * 4);
  HR_CHECK(usable > 0, "no room above the state");
  if (usable > kFlashPage.value) usable -= usable % kFlashPage.value;
  return {c.memory.hbm.view(begin_of_rest(c.plan.of_device(c.world.device())), Bytes(usable)).data(), usable};
}

void transfer(const StateContext& c, Collective kind, std::byte* data, std::int64_t bytes, int peer) {
  CollectiveArgs args;
  args.kind = kind;
  args.dtype = DType::kI32;  // the bytes are moved as words, never summed
  args.in = args.out = data;
  args.inner = bytes / 4;
  args.peer = peer;
  c.world.world().wait(*c.everyone.start(args));
}

std::byte* fetch(const StateContext& c, const StateTensor& t, std::int64_t at, std::int64_t n,
                 const Staging& stage) {
  if (t.tier == Tier::kHbm) return c.memory.hbm.view(t.offset + Bytes(at), Bytes(n)).data();
  c.memory.beyond(t.tier).read(t.offset + Bytes(at), {stage.data, static_cast<std::size_t>(n)});
  return stage.data;
}

bool agree(const StateContext& c, bool of_root) {
  const Staging stage = staging(c);
  auto* word = reinterpret_cast<std::int32_t*>(stage.data);
  *word = of_root ? 1 : 0;
  CollectiveArgs args;
  args.kind = Collective::kBroadcast;
  args.dtype = DType::kI32;
  args.in = args.out = stage.data;
  args.inner = 1;
  c.world.world().wait(*c.everyone.start(args));
  return *word != 0;
}

int sum_of_all(const StateContext& c, int own) {
  const Staging stage = staging(c);
  auto sum = static_cast<float>(own);
  std::memcpy(stage.data, &sum, sizeof sum);
  CollectiveArgs args;
  args.kind = Collective::kAllReduce;
  args.dtype = DType::kF32;
  args.in = args.out = stage.data;
  args.inner = 1;
  c.world.world().wait(*c.everyone.start(args));
  std::memcpy(&sum, stage.data, sizeof sum);
  return static_cast<int>(sum);
}

}  // namespace hyperrun
