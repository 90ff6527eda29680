#include "runtime/sim/track.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/sim/duration.h"

namespace hyperrun {
namespace {

struct HashOfCollective {
  std::size_t operator()(const instr::Collective* c) const {
    std::size_t hash = static_cast<std::size_t>(c->kind);
    const auto mix = [&](std::int64_t v) { hash = hash * 0x9e3779b97f4a7c15 + static_cast<std::size_t>(v); };
    for (const AxisId a : c->axes) mix(a);
    mix(c->outer), mix(c->inner), mix(c->from), mix(c->middle), mix(c->to), mix(c->peer), mix(c->experts);
    return hash ^ (hash >> 32);
  }
};
struct SameCollective {
  bool operator()(const instr::Collective* a, const instr::Collective* b) const { return *a == *b; }
};

// That a feeder hands over for an instruction.
double kernels(const InstrOp& op, const Scores& scores) {
  const auto of = [&](const auto& o) {
    const bool together = scores.together(static_cast<double>(o.batch * o.kv_heads * o.group));
    return (together ? scores.kernels : scores.kernels_apart).value;
  };
  if (const auto* forward = std::get_if<instr::Attention>(&op)) return of(*forward);
  if (const auto* backward = std::get_if<instr::AttentionGrad>(&op)) return of(*backward);
  return 1;
}

}  // namespace

Track::Track(const Program& program, const Machine& machine) : program_(&program) {
  if (machine.fused) kernels_ = kernels_of(program);
  std::unordered_map<const instr::Collective*, std::int32_t, HashOfCollective, SameCollective> known;
  first_wait_.push_back(0);
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    auto& stream = order_[static_cast<std::size_t>(instr.stream)];
    stream.push_back(static_cast<std::int32_t>(i));
    HR_CHECK(instr.seq == static_cast<std::int32_t>(stream.size()),
             program.name + ": instruction " + std::to_string(i) + " is out of sequence");
    waits_.insert(waits_.end(), instr.waits.begin(), instr.waits.end());
    first_wait_.push_back(static_cast<std::uint32_t>(waits_.size()));

    const auto* c = std::get_if<instr::Collective>(&instr.op);
    durations_.push_back(c == nullptr ? computing(i, machine) : Nanos(0));
    slot_of_.push_back(-1);
    if (c == nullptr) continue;
    const auto [it, is_new] = known.try_emplace(c, static_cast<std::int32_t>(slots_.size()));
    if (is_new) slots_.push_back({&instr, i, 0});
    slot_of_.back() = it->second;
    ++slots_[static_cast<std::size_t>(it->second)].count;
  }
  if (machine.feeder.takes_time() || machine.feeder.in_order) take(machine);
}

std::vector<const Instr*> Track::kernel(std::size_t instr) const {
  if (!kernels_) return {&program_->instrs[instr]};
  std::vector<const Instr*> list;
  for (const std::int32_t i : (*kernels_)[instr])
    list.push_back(&program_->instrs[static_cast<std::size_t>(i)]);
  return list;
}

Nanos Track::computing(std::size_t instr, const Machine& machine) const {
  if (kernels_)
    if (const auto first = static_cast<std::size_t>((*kernels_)[instr].front()); first != instr)
      return durations_[first];
  const std::vector<const Instr*> members = kernel(instr);
  if (members.size() == 1) return hyperrun::duration(*members[0], program_->mesh, {}, machine);
  const double all = compute_cost(members, program_->mesh, machine).nanos();
  return checked_duration(all / static_cast<double>(members.size()), *members[0]);
}

Nanos Track::meeting(const Slot& slot, const Where& where, const Machine& machine) const {
  const std::vector<const Instr*> members = kernel(slot.index);
  if (members.size() == 1) return hyperrun::duration(*slot.instr, program_->mesh, where, machine);
  Instr all = *slot.instr;
  auto& bucket = std::get<instr::Collective>(all.op);
  const auto own = static_cast<double>(bucket.inner);
  bucket.inner = 0;
  for (const Instr* member : members) bucket.inner += std::get<instr::Collective>(member->op).inner;
  const Nanos lasts = hyperrun::duration(all, program_->mesh, where, machine);
  return checked_duration(static_cast<double>(lasts.value) * own / static_cast<double>(bucket.inner), all);
}

std::string Track::explain(std::size_t instr, const Machine& machine) const {
  const std::vector<const Instr*> members = kernel(instr);
  const std::string text = hyperrun::explain(compute_cost(members, program_->mesh, machine));
  if (members.size() == 1) return text;
  return text + "    done by one kernel with " + std::to_string(members.size() - 1) +
         " more, which share its time\n";
}

void Track::take(const Machine& machine) {
  const Feeder& feeder = machine.feeder;
  in_order_ = feeder.in_order;
  const std::vector<Instr>& instrs = program_->instrs;
  const bool role_loads = std::ranges::any_of(
      instrs, [](const Instr& i) { return std::holds_alternative<instr::LoadBatch>(i.op); });
  std::vector<Pass> passes;  // of the messages that come, in their order
  std::int32_t turn = 0, used = 0;
  for (const Instr& instr : instrs) {
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    const bool loads = std::holds_alternative<instr::LoadBatch>(instr.op);
    const bool sends = c != nullptr && c->kind == instr::CollectiveKind::kSend;
    if (instr.stream == StreamKind::kRecv) passes.push_back(instr.pass);
    std::int32_t arrival = 0;
    for (const Event& e : instr.waits)
      if (e.stream == StreamKind::kRecv && e.seq > used) used = arrival = e.seq;
    // A stage that loads nothing of a micro-batch begins it with what comes of it.
    const bool begins = loads || (!role_loads && arrival > 0 &&
                                  passes[static_cast<std::size_t>(arrival) - 1] == Pass::kForward);
    double nanos = (instr.pass == Pass::kForward ? feeder.forward.value : feeder.backward.value) *
                   kernels(instr.op, machine.scores);
    const bool message = c != nullptr && instr::is_message(c->kind);
    if (c != nullptr)
      nanos += feeder.member.value * static_cast<double>(message ? 2 : program_->mesh.size(c->axes));
    if (kernels_) nanos /= static_cast<double>((*kernels_)[feeding_.size()].size());
    if (begins) nanos += feeder.micro_batch.value;
    feeding_.emplace_back(std::llround(nanos));
    drains_.push_back(loads || sends || arrival > 0 || std::holds_alternative<instr::TokenLoss>(instr.op));
    arrivals_.push_back(arrival);
    turns_.push_back(message ? -1 : turn++);
  }
}

}  // namespace hyperrun
