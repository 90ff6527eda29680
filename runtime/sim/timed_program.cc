#include "runtime/sim/timed_program.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/cost/duration.h"

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

// Number of kernels that a feeder hands over for an instruction.
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

TimedProgram::TimedProgram(const Program& program, const Machine& machine)
    : program_(&program), costs_(program, machine) {
  // A collective in a kernel of several instructions lasts longer than the same one alone.
  std::array<std::unordered_map<const instr::Collective*, std::int32_t, HashOfCollective, SameCollective>, 2>
      known;
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
    durations_.push_back(c == nullptr ? costs_.computing(i) : Nanos(0));
    collective_index_.push_back(-1);
    if (c == nullptr) continue;
    const auto [it, is_new] =
        known[costs_.together(i) > 1 ? 1 : 0].try_emplace(c, static_cast<std::int32_t>(collectives_.size()));
    if (is_new) collectives_.push_back({&instr, i, 0});
    collective_index_.back() = it->second;
    ++collectives_[static_cast<std::size_t>(it->second)].count;
  }
  if (machine.feeding().takes_time() || machine.in_order()) feed_from(machine);
}

void TimedProgram::feed_from(const Machine& machine) {
  const Feeder& feeder = machine.feeding();
  in_order_ = machine.in_order();
  const std::vector<Instr>& instrs = program_->instrs;
  const bool role_loads = std::ranges::any_of(instrs, [](const Instr& i) { return loads_tokens(i.op); });
  std::vector<Pass> passes;  // passes of the messages received so far, in their order
  std::int32_t turn = 0, used = 0;
  for (const Instr& instr : instrs) {
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    const bool loads = loads_tokens(instr.op);
    const bool sends = c != nullptr && c->kind == instr::CollectiveKind::kSend;
    if (instr.stream == StreamKind::kRecv) passes.push_back(instr.pass);
    std::int32_t arrival = 0;
    for (const Event& e : instr.waits)
      if (e.stream == StreamKind::kRecv && e.seq > used) used = arrival = e.seq;
    // A stage that loads no tokens begins a micro-batch with the first message of its forward pass.
    const bool begins = loads || (!role_loads && arrival > 0 &&
                                  passes[static_cast<std::size_t>(arrival) - 1] == Pass::kForward);
    double nanos = (instr.pass == Pass::kForward ? feeder.forward.value : feeder.backward.value) *
                   kernels(instr.op, machine.scores);
    const bool message = c != nullptr && instr::is_message(c->kind);
    if (c != nullptr)
      nanos += feeder.member.value * static_cast<double>(message ? 2 : program_->mesh.size(c->axes));
    nanos /= static_cast<double>(costs_.together(feeding_.size()));
    if (begins) nanos += feeder.micro_batch.value;
    feeding_.push_back(checked_duration(nanos, instr, machine));
    drains_.push_back(loads || sends || arrival > 0 || std::holds_alternative<instr::TokenLoss>(instr.op) ||
                      std::holds_alternative<instr::PolicyLoss>(instr.op));
    arrivals_.push_back(arrival);
    turns_.push_back(message ? -1 : turn++);
  }
}

}  // namespace hyperrun
