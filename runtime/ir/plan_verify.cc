#include <deque>
#include <map>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ir/program.h"

namespace hyperrun {
namespace {

// The roles side by side: each issues its instructions in order, starts what communicates, and waits for it
// only where an event demands it. A message is over when both sides have come to it.
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
      HR_CHECK(states_[r].next == p.instrs.size(), p.name + " of role " + std::to_string(r) +
                                                       " waits for ever at instruction " +
                                                       std::to_string(states_[r].next));
    }
    for (const auto& [pair, list] : waiting_)
      HR_CHECK(list.empty(), "a message from role " + std::to_string(pair.first) + " to role " +
                                 std::to_string(pair.second) + " is not taken");
  }

 private:
  struct State {
    const Program* program;
    std::size_t next;
    std::set<std::pair<StreamKind, std::int32_t>> under_way;  // messages, by stream and number
  };
  // One side of a message that waits for the other.
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

  // In order: an event means that all before have finished as well.
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
    HR_CHECK(
        theirs.elements == mine.elements && theirs.dtype == mine.dtype,
        "role " + std::to_string(r) + " expects another message than role " + std::to_string(peer) + " has");
    states_[r].under_way.erase({mine.stream, mine.seq});
    states_[peer].under_way.erase({theirs.stream, theirs.seq});
  }

  std::vector<State> states_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Side>> waiting_;  // by sender and receiver
};

}  // namespace

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
