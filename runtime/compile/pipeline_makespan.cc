#include "runtime/compile/pipeline_makespan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/cost/estimate.h"

namespace hyperrun {
namespace {

// Walks all roles. Each advances its streams until they wait for an event or a meeting whose time is unknown.
class Walk {
 public:
  Walk(const Plan& plan, std::size_t program, const Machine& machine)
      : plan_(plan), roles_(plan.roles.size()) {
    parallel_for(roles_.size(), [&](std::size_t r) {
      RoleState& role = roles_[r];
      role.device = plan.mesh.group(0, plan.role_axes)[r];
      role.program = &plan.roles[r].programs[program];
      role.durations = estimate_durations(*role.program, machine, role.device);
      for (std::size_t i = 0; i < role.program->instrs.size(); ++i)
        role.streams[static_cast<std::size_t>(role.program->instrs[i].stream)].order.push_back(i);
    });
  }

  Nanos run() {
    for (std::size_t r = 0; r < roles_.size(); ++r) ready_.push_back(r);
    while (!ready_.empty()) {
      const std::size_t r = ready_.back();
      ready_.pop_back();
      go_on(r);
    }
    std::int64_t end = 0;
    for (const RoleState& role : roles_)
      for (const Stream& stream : role.streams) {
        HR_CHECK(stream.ends.size() == stream.order.size(), "a role waits for ever");
        if (!stream.ends.empty()) end = std::max(end, stream.ends.back());
      }
    return Nanos(end);
  }

 private:
  struct Stream {
    std::vector<std::size_t> order;  // instructions
    std::vector<std::int64_t> ends;  // ns, of finished instructions
    bool meets = false;              // the next instruction waits for the other members of its meeting
  };
  struct RoleState {
    const Program* program = nullptr;
    int device = 0;
    std::vector<Nanos> durations;
    std::array<Stream, kStreams> streams;
  };
  struct Comer {
    std::size_t role, stream;
  };
  struct Meeting {
    std::vector<Comer> comers;
    std::int64_t begin = 0;
  };

  void go_on(std::size_t r) {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t s = 0; s < kStreams; ++s)
        while (advance(r, s)) any = true;
    }
  }

  // The begin of the stream's next instruction; nullopt if an event that it waits for is unknown.
  static std::optional<std::int64_t> may_begin(const RoleState& role, const Stream& stream,
                                               const Instr& instr) {
    std::int64_t begin = stream.ends.empty() ? 0 : stream.ends.back();
    for (const Event& e : instr.waits) {
      const std::vector<std::int64_t>& ends = role.streams[static_cast<std::size_t>(e.stream)].ends;
      if (std::ssize(ends) < e.seq) return std::nullopt;
      begin = std::max(begin, ends[static_cast<std::size_t>(e.seq) - 1]);
    }
    return begin;
  }

  static void finish(RoleState& role, Stream& stream, std::int64_t begin) {
    stream.ends.push_back(begin + role.durations[stream.order[stream.ends.size()]].value);
    stream.meets = false;
  }

  // Returns whether the stream's next instruction finished.
  bool advance(std::size_t r, std::size_t s) {
    RoleState& role = roles_[r];
    Stream& stream = role.streams[s];
    if (stream.meets || stream.ends.size() == stream.order.size()) return false;
    const Instr& instr = role.program->instrs[stream.order[stream.ends.size()]];
    const std::optional<std::int64_t> begin = may_begin(role, stream, instr);
    if (!begin) return false;
    const Members members = members_of(instr, role.device, r);
    if (members.second.size() < 2) {
      finish(role, stream, *begin);
      return true;
    }
    Meeting& meeting = meetings_[members];
    stream.meets = true;
    meeting.comers.push_back({r, s});
    meeting.begin = std::max(meeting.begin, *begin);
    if (meeting.comers.size() < members.second.size()) return false;
    const Meeting complete = std::exchange(meeting, {});
    for (const Comer& c : complete.comers) {
      finish(roles_[c.role], roles_[c.role].streams[c.stream], complete.begin);
      if (c.role != r) ready_.push_back(c.role);
    }
    return true;
  }

  // Message: true, sender and receiver. Collective: false, the roles of its group.
  using Members = std::pair<bool, std::vector<std::size_t>>;

  Members members_of(const Instr& instr, int device, std::size_t r) const {
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    if (c == nullptr || roles_.size() == 1) return {};
    const std::vector<int> group = plan_.mesh.group(device, c->axes);
    if (instr::is_message(c->kind)) {
      const std::size_t peer = plan_.role_of(group[static_cast<std::size_t>(c->peer)]);
      const bool sends = c->kind == instr::CollectiveKind::kSend;
      return {true, sends ? std::vector{r, peer} : std::vector{peer, r}};
    }
    std::vector<std::size_t> list;
    for (const int member : group) list.push_back(plan_.role_of(member));
    std::ranges::sort(list);
    list.erase(std::ranges::unique(list).begin(), list.end());
    return {false, list};
  }

  const Plan& plan_;
  std::vector<RoleState> roles_;
  std::map<Members, Meeting> meetings_;
  std::vector<std::size_t> ready_;
};

}  // namespace

Nanos pipeline_makespan(const Plan& plan, std::size_t program, const Machine& machine) {
  return Walk(plan, program, machine).run();
}

}  // namespace hyperrun
