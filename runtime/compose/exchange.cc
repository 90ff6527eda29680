#include "runtime/compose/exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/events.h"
#include "runtime/compile/place.h"
#include "runtime/compose/boxes.h"

namespace hyperrun {
namespace {

constexpr const char* kExchange = "exchange";

// The part of a tensor on one device.
struct Part {
  const StateTensor* tensor = nullptr;
  int device = 0;  // device of the plan
  Box box;
};

// The weights of a plan by name, each with its parts.
std::map<std::string, std::vector<Part>> parts_of(const Plan& plan) {
  std::map<std::string, std::vector<Part>> parts;
  for (std::int64_t d = 0; d < plan.mesh.devices(); ++d)
    for (const StateTensor& t : plan.of_device(d).state)
      if (t.cls == TensorClass::kWeight)
        parts[t.name].push_back({&t, static_cast<int>(d), box_of(t, plan.mesh, static_cast<int>(d))});
  return parts;
}

// Builds the Program of one rank.
class RankProgram {
 public:
  RankProgram(const Mesh& mesh, const TierBytes& above) {
    program_.name = kExchange;
    program_.mesh = mesh;
    places_.end = places_.end_of_cache = above;
  }

  // The buffer in HBM with a part to send. A part in a lower tier is prefetched first.
  BufferId source(const Part& part) {
    const BufferId resident = state(part, "from/");
    const auto [known, is_new] = in_hbm_.try_emplace(resident.index(), resident);
    if (is_new && part.tensor->tier != Tier::kHbm) {
      known->second = buffer(part.tensor->name + "@hbm", part.tensor->bytes, Category::kWeights);
      add(instr::Prefetch{part.tensor->tier, part.tensor->bytes.value}, StreamKind::kDmaIn,
          whole(part, resident), whole(part, known->second));
    }
    return known->second;
  }

  // The buffer in HBM that receives a part. For a part in a lower tier it is temporary; see store_to_tier().
  BufferId target(const Part& part) {
    const BufferId final_buffer = state(part, "to/");
    if (part.tensor->tier == Tier::kHbm) return final_buffer;
    return buffer(part.tensor->name + "@new", part.tensor->bytes, Category::kWeights);
  }
  // Stores a received part in its lower tier, if it belongs in one.
  void store_to_tier(const Part& part, BufferId received) {
    const BufferId final_buffer = state(part, "to/");
    if (received == final_buffer) return;
    add(instr::Store{part.tensor->tier, part.tensor->bytes.value}, StreamKind::kDmaOut, whole(part, received),
        whole(part, final_buffer));
  }

  BufferId message(const std::string& name, Bytes bytes) {
    return buffer(name, bytes, Category::kCommunication);
  }

  void copy(const Region& from, const Region& to, const std::vector<std::int64_t>& size) {
    add(instr::StridedCopy{size, from.strides, to.strides}, StreamKind::kVector, from.operand, to.operand);
  }
  void send(const Operand& what, int to) { communicate(instr::CollectiveKind::kSend, what, to); }
  void receive(const Operand& what, int from) { communicate(instr::CollectiveKind::kRecv, what, from); }

  void begin(const std::string& tensor) { program_.origins.push_back(tensor); }

  Role finish() {
    place_buffers(program_, places_);
    add_events(program_);
    verify(program_);
    Role role;
    role.programs.push_back(std::move(program_));
    return role;
  }

 private:
  BufferId buffer(std::string name, Bytes bytes, Category category) {
    Buffer b;
    b.name = std::move(name);
    b.bytes = bytes;
    b.category = category;
    program_.buffers.push_back(std::move(b));
    return BufferId(std::ssize(program_.buffers) - 1);
  }

  BufferId state(const Part& part, const std::string& side) {
    const StateTensor& t = *part.tensor;
    const auto [known, is_new] = state_.try_emplace(side + t.name, BufferId());
    if (!is_new) return known->second;
    known->second = buffer(side + t.name, t.bytes, Category::kWeights);
    Buffer& b = program_.buffers[known->second.index()];
    b.tier = t.tier;
    b.state = true;
    places_.places[b.name] = {t.tier, t.offset};
    return known->second;
  }

  static Operand whole(const Part& part, BufferId buffer) {
    return {buffer, {}, part.tensor->bytes, part.tensor->dtype};
  }

  void communicate(instr::CollectiveKind kind, const Operand& what, int peer) {
    instr::Collective c;
    c.kind = kind;
    c.axes = {0};
    c.dtype = what.dtype;
    c.inner = what.bytes.value / size_of(what.dtype);
    c.peer = peer;
    Instr i;
    i.op = c;
    i.stream = kind == instr::CollectiveKind::kSend ? StreamKind::kSend : StreamKind::kRecv;
    (kind == instr::CollectiveKind::kSend ? i.in : i.out) = {what};
    append(std::move(i));
  }

  void add(InstrOp op, StreamKind stream, const Operand& in, const Operand& out) {
    Instr i;
    i.op = std::move(op);
    i.stream = stream;
    i.in = {in};
    i.out = {out};
    append(std::move(i));
  }

  void append(Instr i) {
    i.pass = Pass::kUpdate;
    i.origin = static_cast<std::int32_t>(program_.origins.size()) - 1;
    program_.instrs.push_back(std::move(i));
  }

  Program program_;
  StatePlaces places_;
  std::map<std::string, BufferId> state_;
  std::map<std::size_t, BufferId> in_hbm_;  // the buffer in HBM, by the part's state buffer
};

// Builds the Programs of all ranks.
class Exchange {
 public:
  Exchange(const PlacedPlan& from, const PlacedPlan& to, const std::vector<TierBytes>& above)
      : from_(from), to_(to), mesh_{{{"rank", static_cast<std::int32_t>(above.size())}}} {
    for (const TierBytes& end : above) programs_.emplace_back(mesh_, end);
  }

  // All ranks send and receive in one common order of messages, so no deadlock can occur. The boxes of a
  // tensor are unpacked after the next tensor has been sent, so that copies overlap with messages.
  Plan run() {
    const auto sources = parts_of(from_.plan), wanted = parts_of(to_.plan);
    for (const auto& [name, targets] : wanted) {
      for (RankProgram& p : programs_) p.begin(name);
      move(held_as(name, *targets.front().tensor, sources), targets);
    }
    unpack();
    Plan plan;
    plan.mesh = mesh_;
    plan.role_axes = {0};
    for (RankProgram& p : programs_) plan.roles.push_back(p.finish());
    verify(plan);
    return plan;
  }

 private:
  struct Arrival {
    int rank;
    Region from, to;
    std::vector<std::int64_t> size;
  };
  struct ReceivedPart {
    int rank;
    const Part* part;
    BufferId buffer;
  };

  static const std::vector<Part>& held_as(const std::string& name, const StateTensor& wanted,
                                          const std::map<std::string, std::vector<Part>>& sources) {
    const auto found = sources.find(name);
    if (found == sources.end() || found->second.front().tensor->saved.shape != wanted.saved.shape)
      throw Error(Code::kBadLayout,
                  fmt::format("{} {}", name,
                              found == sources.end() ? "is no weight of the program it comes from"
                                                     : "has another shape where it comes from"))
          .legal("programs of one model")
          .fix("give both programs the same model");
    return found->second;
  }

  void move(const std::vector<Part>& sources, const std::vector<Part>& targets) {
    std::map<Box, std::vector<const Part*>> holders;
    for (const Part& part : sources) holders[part.box].push_back(&part);
    std::vector<Arrival> arrivals;
    std::vector<ReceivedPart> received;
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const Part& part = targets[t];
      const int rank = to_.ranks[static_cast<std::size_t>(part.device)];
      received.push_back({rank, &part, program(rank).target(part)});
      for (const auto& [box, parts] : holders)
        if (const std::optional<Box> both = common(box, part.box))
          bring(nearest(parts, rank, t), *both, received.back(), arrivals);
    }
    unpack();
    arrivals_ = std::move(arrivals);
    received_ = std::move(received);
  }

  // The sender among the holders of a box: the rank itself if possible, else the holders in turn.
  const Part& nearest(const std::vector<const Part*>& parts, int rank, std::size_t turn) const {
    const auto own = std::ranges::find(parts, rank, [&](const Part* p) { return rank_of(*p); });
    return own != parts.end() ? **own : *parts[turn % parts.size()];
  }

  void bring(const Part& source, const Box& what, const ReceivedPart& to, std::vector<Arrival>& arrivals) {
    const int rank = rank_of(source);
    const DType dtype = to.part->tensor->dtype;
    const Region here = region(program(rank).source(source), source.tensor->dtype, source.box, what);
    const Region there = region(to.buffer, dtype, to.part->box, what);
    if (rank == to.rank) {
      program(rank).copy(here, there, what.size);
      return;
    }
    const Bytes bytes(elements(what) * size_of(dtype));
    Region sent = here;
    if (!here.contiguous || source.tensor->dtype != dtype) {
      sent = region(program(rank).message(source.tensor->name + "@sent", bytes), dtype, what, what);
      program(rank).copy(here, sent, what.size);
    }
    program(rank).send(sent.operand, to.rank);
    if (there.contiguous) {
      program(to.rank).receive(there.operand, rank);
      return;
    }
    const Region came =
        region(program(to.rank).message(source.tensor->name + "@came", bytes), dtype, what, what);
    program(to.rank).receive(came.operand, rank);
    arrivals.push_back({to.rank, came, there, what.size});
  }

  // Copies the boxes of the previous tensor into its parts, and stores the parts in their tiers.
  void unpack() {
    for (const Arrival& a : arrivals_) program(a.rank).copy(a.from, a.to, a.size);
    for (const ReceivedPart& p : received_) program(p.rank).store_to_tier(*p.part, p.buffer);
    arrivals_.clear();
    received_.clear();
  }

  int rank_of(const Part& source) const { return from_.ranks[static_cast<std::size_t>(source.device)]; }
  RankProgram& program(int rank) { return programs_[static_cast<std::size_t>(rank)]; }

  const PlacedPlan& from_;
  const PlacedPlan& to_;
  Mesh mesh_;
  std::vector<RankProgram> programs_;
  std::vector<Arrival> arrivals_;       // boxes of the previous tensor
  std::vector<ReceivedPart> received_;  // parts of the previous tensor
};

}  // namespace

Plan compile_exchange(const PlacedPlan& from, const PlacedPlan& to, const std::vector<TierBytes>& above) {
  return Exchange(from, to, above).run();
}

}  // namespace hyperrun
