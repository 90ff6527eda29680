#include "tests/offload/random_programs.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/compile/events.h"
#include "runtime/compile/place.h"
#include "runtime/offload/apply.h"

namespace hyperrun::testing {
namespace {

constexpr double kBytesPerNano = 2;

std::size_t mix(std::size_t a, std::size_t b) { return (a ^ b) * 0x9e3779b97f4a7c15 + (a >> 29); }

// Computes Outcome::seen. The value of state begins as a hash of its name.
std::vector<std::size_t> values_seen(const Program& p, const std::vector<std::int32_t>& where) {
  std::vector<std::size_t> value(p.buffers.size()), seen;
  for (std::size_t b = 0; b < value.size(); ++b)
    if (p.buffers[b].state) value[b] = std::hash<std::string>{}(p.buffers[b].name);
  for (std::size_t i = 0; i < p.instrs.size(); ++i) {
    const Instr& instr = p.instrs[i];
    std::size_t read = std::hash<std::string>{}(p.origins[static_cast<std::size_t>(instr.origin)].substr(
        0, p.origins[static_cast<std::size_t>(instr.origin)].find_first_of(".@")));
    for (const Operand& o : instr.in) read = mix(read, value[o.buffer.index()]);
    if (std::ranges::binary_search(where, static_cast<std::int32_t>(i))) seen.push_back(read);
    if (beyond_hbm(instr.op) != Tier::kHbm) read = value[instr.in[0].buffer.index()];
    for (const Operand& o : instr.out) value[o.buffer.index()] = read;
  }
  return seen;
}

}  // namespace

Nanos transfer(Bytes b) { return Nanos(10 + std::llround(static_cast<double>(b.value) / kBytesPerNano)); }

Program with_room_to_spare(Program program, unsigned seed) {
  std::mt19937_64 random(seed);
  for (Buffer& b : program.buffers)
    if (!b.state && random() % 2 == 0) b.empty = Bytes(b.bytes.value * 15 / 16);
  return program;
}

std::vector<Nanos> durations(const Program& program) {
  std::vector<Nanos> list;
  for (const Instr& instr : program.instrs) {
    const auto* fill = std::get_if<instr::Fill>(&instr.op);
    list.push_back(fill != nullptr ? Nanos(fill->n) : transfer(instr.in[0].bytes - instr.in[0].empty));
  }
  return list;
}

RandomProgram::RandomProgram(unsigned seed, int instrs, int states) : random_(seed) {
  program_.mesh.axes = {{"dp", 1}};
  for (int s = 0; s < states; ++s) add_buffer("state" + std::to_string(s), true);
  for (int i = 0; i < instrs; ++i) add_instr(i);
}

std::int64_t RandomProgram::any(std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(to - from + 1));
}

Operand RandomProgram::add_buffer(std::string name, bool state) {
  Buffer b;
  b.name = std::move(name);
  b.bytes = Bytes(64 * any(8, 64));
  b.category = state ? Category::kWeights : Category::kActivations;
  b.state = state;
  program_.buffers.push_back(b);
  written_.push_back({BufferId(std::ssize(program_.buffers) - 1), Bytes(0), b.bytes});
  return written_.back();
}

void RandomProgram::add_instr(int i) {
  Instr instr;
  instr.op = instr::Fill{any(100, 3000), 0};
  instr.stream = any(0, 3) == 0 ? StreamKind::kVector : StreamKind::kCube;
  for (std::int64_t n = any(0, 2); n > 0 && !written_.empty(); --n)
    instr.in.push_back(written_[static_cast<std::size_t>(any(0, std::ssize(written_) - 1))]);
  // Sometimes an existing buffer is overwritten, also without being read, as by a message.
  if (!instr.in.empty() && any(0, 4) == 0)
    instr.out = {instr.in.front()};
  else if (!written_.empty() && any(0, 9) == 0)
    instr.out = {written_[static_cast<std::size_t>(any(0, std::ssize(written_) - 1))]};
  else
    instr.out = {add_buffer("t" + std::to_string(i), false)};
  instr.origin = i;
  program_.origins.push_back("node" + std::to_string(i));
  program_.instrs.push_back(std::move(instr));
}

Outcome outcome(const Program& program, const std::vector<BufferUses>& uses, const OffloadPlan& plan,
                Bytes enough) {
  Program p = program;
  const std::vector<std::int32_t> where = apply(p, uses, plan, Tier::kPool);
  StatePlaces places;
  place_state({&p, 1}, places);
  place_buffers(p, places, enough);
  add_events(p);
  verify(p);
  const auto again =
      std::ranges::count_if(p.origins, [](const std::string& o) { return o.ends_with(kMadeAgain); });
  return {p.peak[0], timeline_as_placed(p, durations(p), where), values_seen(p, where),
          static_cast<std::size_t>(again)};
}

std::optional<Outcome> Setting::planned(Bytes budget) const {
  std::optional<Outcome> best;
  for (const auto policy :
       {gap_policy, hidden_state_policy, belady_policy, rematerialize_policy, slack_policy, lru_policy}) {
    std::optional<Outcome> one = by(policy, budget, timeline);
    for (int again = 1; one && again < 4; ++again)
      if (const auto next = by(policy, budget, one->timeline); next && next->length() < one->length())
        one = next;
    if (one && (!best || one->length() < best->length())) best = one;
  }
  return best;
}

std::optional<Outcome> Setting::by(OffloadPlan (*policy)(const OffloadProblem&), Bytes budget,
                                   const Timeline& times) const {
  Bytes target = budget;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const Outcome o = outcome(program, uses, policy({program, uses, times, transfer, target, {}, true}));
    if (o.peak <= budget) return o;
    target -= o.peak - budget;
  }
  return std::nullopt;
}

}  // namespace hyperrun::testing
