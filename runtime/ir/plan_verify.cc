#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ir/program.h"

namespace hyperrun {
namespace {

// Runs the roles side by side. Each issues its instructions in order, starts communication, and waits for it
// only where an event demands it. A message has finished when both sides have issued it.
class Dispatch {
 public:
  Dispatch(const Plan& plan, std::size_t program) {
    for (const Role& role : plan.roles) states_.push_back({&role.programs[program], 0, {}});
  }

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < states_.size(); ++r)
        while (step(r)) moved = true;
    }
    for (std::size_t r = 0; r < states_.size(); ++r) {
      const Program& p = *states_[r].program;
      HR_CHECK(states_[r].next == p.instrs.size(),
               fmt::format("{} of role {} waits for ever at instruction {}", p.name, r, states_[r].next));
    }
    for (const auto& [pair, list] : waiting_)
      HR_CHECK(list.empty(),
               fmt::format("a message from role {} to role {} is not taken", pair.first, pair.second));
  }

 private:
  struct State {
    const Program* program;
    std::size_t next;
    std::set<std::pair<StreamKind, std::int32_t>> under_way;  // unfinished messages, by stream and number
  };
  // The side of a message that was issued first and waits for the other.
  struct Side {
    std::size_t role;
    StreamKind stream;
    std::int32_t seq;
    std::int64_t elements;
    DType dtype;
  };

  bool step(std::size_t r) {
    State& s = states_[r];
    if (s.next == s.program->instrs.size()) return false;
    const Instr& instr = s.program->instrs[s.next];
    for (const Event& e : instr.waits)
      if (e.stream == StreamKind::kSend || e.stream == StreamKind::kRecv)
        if (!finished(s, e)) return false;
    if (const auto* c = std::get_if<instr::Collective>(&instr.op); c != nullptr && instr::is_message(c->kind))
      meet(r, instr, *c);
    ++s.next;
    return true;
  }

  // Streams are in order: an event means that all earlier messages of the stream have finished as well.
  static bool finished(const State& s, const Event& e) {
    const auto oldest = s.under_way.lower_bound({e.stream, 0});
    return oldest == s.under_way.end() || oldest->first != e.stream || oldest->second > e.seq;
  }

  void meet(std::size_t r, const Instr& instr, const instr::Collective& c) {
    const bool sends = c.kind == instr::CollectiveKind::kSend;
    const auto peer = static_cast<std::size_t>(c.peer);
    HR_CHECK(peer < states_.size() && peer != r, "a message to nobody");
    const Side mine{r, instr.stream, instr.seq, c.inner, c.dtype};
    auto& list = waiting_[sends ? std::pair(r, peer) : std::pair(peer, r)];
    states_[r].under_way.emplace(instr.stream, instr.seq);
    if (list.empty() || list.front().role == r) {
      list.push_back(mine);
      return;
    }
    const Side theirs = list.front();
    list.pop_front();
    HR_CHECK(theirs.elements == mine.elements && theirs.dtype == mine.dtype,
             fmt::format("role {} expects another message than role {} has", r, peer));
    states_[r].under_way.erase({mine.stream, mine.seq});
    states_[peer].under_way.erase({theirs.stream, theirs.seq});
  }

  std::vector<State> states_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Side>> waiting_;  // by sender and receiver
};

// Runs the roles side by side, stream by stream. The next instruction of a stream begins when all its waits
// have ended; a message ends when both sides have begun it. The order in which streams are tried does not
// matter.
class InOrder {
 public:
  InOrder(const Plan& plan, std::size_t program) {
    for (const Role& role : plan.roles) {
      State& s = states_.emplace_back();
      s.program = &role.programs[program];
      for (std::size_t i = 0; i < s.program->instrs.size(); ++i)
        s.streams[static_cast<std::size_t>(s.program->instrs[i].stream)].push_back(i);
    }
  }

  bool ends() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < states_.size(); ++r)
        for (std::size_t stream = 0; stream < kStreams; ++stream)
          while (step(r, stream)) moved = true;
    }
    return std::ranges::all_of(states_, [](const State& s) {
      return std::ranges::equal(s.streams, s.finished, [](const auto& of_stream, std::int32_t finished) {
        return std::ssize(of_stream) == finished;
      });
    });
  }

 private:
  struct State {
    const Program* program = nullptr;
    std::array<std::vector<std::size_t>, kStreams> streams;
    std::array<std::int32_t, kStreams> finished{};
    std::array<bool, kStreams> waiting{};  // streams that wait for the other side of a message
  };

  bool step(std::size_t r, std::size_t stream) {
    State& s = states_[r];
    const auto next = static_cast<std::size_t>(s.finished[stream]);
    if (s.waiting[stream] || next == s.streams[stream].size()) return false;
    const Instr& instr = s.program->instrs[s.streams[stream][next]];
    for (const Event& e : instr.waits)
      if (s.finished[static_cast<std::size_t>(e.stream)] < e.seq) return false;
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    if (c == nullptr || !instr::is_message(c->kind))
      ++s.finished[stream];
    else
      meet(r, stream, *c);
    return true;
  }

  void meet(std::size_t r, std::size_t stream, const instr::Collective& c) {
    const auto peer = static_cast<std::size_t>(c.peer);
    const bool sends = c.kind == instr::CollectiveKind::kSend;
    auto& other = begun_[sends ? std::pair(r, peer) : std::pair(peer, r)];
    if (!other) {
      other = {r, stream};
      states_[r].waiting[stream] = true;
      return;
    }
    const auto [theirs, of_theirs] = *std::exchange(other, std::nullopt);
    states_[theirs].waiting[of_theirs] = false;
    ++states_[theirs].finished[of_theirs];
    ++states_[r].finished[stream];
  }

  std::vector<State> states_;
  // The role that waits, and its stream, by sender and receiver. It has begun no other message of this pair.
  std::map<std::pair<std::size_t, std::size_t>, std::optional<std::pair<std::size_t, std::size_t>>> begun_;
};

}  // namespace

bool messages_meet(const Plan& plan) {
  if (plan.roles.size() == 1) return true;
  for (std::size_t p = 0; p < plan.roles.front().programs.size(); ++p)
    if (!InOrder(plan, p).ends()) return false;
  return true;
}

void verify(const Plan& plan) {
  HR_CHECK(static_cast<std::int64_t>(plan.roles.size()) == plan.mesh.size(plan.role_axes),
           "a role without devices");
  for (const Role& role : plan.roles) {
    HR_CHECK(role.programs.size() == plan.roles.front().programs.size(), "roles differ in their programs");
    for (std::size_t p = 0; p < role.programs.size(); ++p)
      HR_CHECK(role.programs[p].name == plan.roles.front().programs[p].name,
               "roles differ in their programs");
  }
  if (plan.roles.size() == 1) return;
  for (std::size_t p = 0; p < plan.roles.front().programs.size(); ++p) Dispatch(plan, p).run();
}

}  // namespace hyperrun
