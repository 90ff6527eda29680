#include "runtime/sim/event_loop.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/sim/event_queue.h"
#include "runtime/sim/shared_cores.h"

namespace hyperrun {
namespace {

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

// The progress of a device.
struct State {
  const SimDevice* device = nullptr;
  std::array<std::int32_t, kStreams> finished{};  // finished instructions of the stream
  std::array<bool, kStreams> running{};
  std::size_t fed = 0;       // instructions handed over by the feeder
  bool feeding = false;      // the feeder is handing over the next one
  std::int32_t turns = 0;    // finished instructions with turns
  std::int32_t handed = 0;   // instructions with turns handed over
  std::int64_t changed = 0;  // time of the last change of `running`
  SimTimes times;

  bool compute_runs() const { return running[at(StreamKind::kCube)] || running[at(StreamKind::kVector)]; }
  bool communication_runs() const {
    return running[at(StreamKind::kComm)] || running[at(StreamKind::kSend)] || running[at(StreamKind::kRecv)];
  }

  // Must be called before anything in `running` changes.
  void advance_to(std::int64_t now) {
    if (communication_runs() && !compute_runs()) times.exposed += Nanos(now - changed);
    changed = now;
  }
};

class EventLoop {
 public:
  EventLoop(std::span<const SimDevice> devices, std::span<const int> meetings, double cores)
      : devices_(devices) {
    for (const int members : meetings) meetings_.push_back({members, {}});
    states_.resize(devices.size());
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const SimDevice& device = devices[d];
      if (cores > 0)
        hosts_.resize(std::max(hosts_.size(), static_cast<std::size_t>(device.host) + 1), Host(cores));
      HR_CHECK(device.durations.size() == device.timed->collectives().size() &&
               device.meetings.size() == device.durations.size());
      for (const Nanos lasts : device.durations) HR_CHECK(lasts.value >= 0, "time runs forward");
      states_[d].device = &device;
      states_[d].times.spans.resize(device.timed->size());
    }
  }

  std::vector<SimTimes> run() {
    for (std::size_t d = 0; d < states_.size(); ++d) start_ready(d, 0);
    while (!queue_.empty()) {
      const auto [now, number, what] = queue_.take();
      if (what.stream == kCores) {
        end_on_host(what, now);
        continue;
      }
      HR_CHECK(now >= states_[what.device].changed, "time runs forward");
      what.stream == kFeeder ? hand_over(states_[what.device]) : finish(what, now);
      start_ready(what.device, now);
    }
    std::vector<SimTimes> times;
    for (State& s : states_) {
      check_complete(s);
      times.push_back(std::move(s.times));
    }
    return times;
  }

 private:
  struct Finished {
    std::uint32_t device;
    StreamKind stream;
    std::uint32_t version = 0;
  };
  struct Host {
    explicit Host(double cores) : cores(cores) {}
    SharedCores<Finished> cores;
    std::uint32_t version = 0;  // version of the event planned last for the next end; it replaces all before
  };
  struct Meeting {
    int members;
    std::vector<Finished> arrived;
  };

  // Stands for a stream in events that end the handing over of an instruction.
  static constexpr auto kFeeder = static_cast<StreamKind>(kStreams);
  // Stands for a stream in events that end computation on a host's cores; `device` is then the host.
  static constexpr auto kCores = static_cast<StreamKind>(kStreams + 1);

  void start_ready(std::size_t d, std::int64_t now) {
    if (states_[d].device->timed->fed()) feed(d, now);
    for (std::size_t s = 0; s < kStreams; ++s) start(d, s, now);
  }

  void feed(std::size_t d, std::int64_t now) {
    State& state = states_[d];
    const TimedProgram& timed = *state.device->timed;
    if (state.feeding || state.fed == timed.size()) return;
    if (timed.drains(state.fed) && state.turns < state.handed) return;
    if (state.finished[at(StreamKind::kRecv)] < timed.arrival(state.fed)) return;
    state.feeding = true;
    queue_.add(now + timed.feeding(state.fed).value, {static_cast<std::uint32_t>(d), kFeeder});
  }

  static void hand_over(State& state) {
    if (state.device->timed->turn(state.fed) >= 0) ++state.handed;
    ++state.fed;
    state.feeding = false;
  }

  static bool may_start(const State& state, std::size_t i) {
    const TimedProgram& timed = *state.device->timed;
    if (!timed.fed()) return true;
    return i < state.fed && (!timed.in_order() || timed.turn(i) < 0 || timed.turn(i) == state.turns);
  }

  // Starts the next instruction of the stream if nothing holds it.
  void start(std::size_t d, std::size_t s, std::int64_t now) {
    State& state = states_[d];
    const TimedProgram& timed = *state.device->timed;
    const auto& stream = timed.stream(s);
    const auto next = static_cast<std::size_t>(state.finished[s]);
    if (state.running[s] || next == stream.size()) return;
    const auto i = static_cast<std::size_t>(stream[next]);
    for (const Event& e : timed.waits(i))
      if (state.finished[at(e.stream)] < e.seq) return;
    if (!may_start(state, i)) return;

    state.advance_to(now);
    state.running[s] = true;
    state.times.spans[i].begin = now;
    const Finished what{static_cast<std::uint32_t>(d), static_cast<StreamKind>(s)};
    if (const std::int32_t collective = timed.collective_index(i); collective < 0)
      compute(*state.device, i, what, now);
    else
      meet(meetings_[static_cast<std::size_t>(state.device->meetings[static_cast<std::size_t>(collective)])],
           what, now);
  }

  void compute(const SimDevice& device, std::size_t instr, const Finished& what, std::int64_t now) {
    const Nanos lasts = device.computing(instr);
    if (hosts_.empty()) return queue_.add(now + lasts.value, what);
    hosts_[static_cast<std::size_t>(device.host)].cores.begin(now, lasts, device.alike, what);
    plan_next_end(device.host);
  }

  void plan_next_end(int host) {
    Host& h = hosts_[static_cast<std::size_t>(host)];
    if (const auto next = h.cores.next())
      queue_.add(*next, {static_cast<std::uint32_t>(host), kCores, ++h.version});
  }

  // Ends the instructions whose core time on a host is over.
  void end_on_host(const Finished& at, std::int64_t now) {
    Host& h = hosts_[at.device];
    if (at.version != h.version) return;  // another instruction has begun since
    const std::vector<Finished> ended = h.cores.ended(now);
    for (const Finished& what : ended) finish(what, now);
    for (const Finished& what : ended) start_ready(what.device, now);
    plan_next_end(static_cast<int>(at.device));
  }

  void meet(Meeting& meeting, const Finished& what, std::int64_t now) {
    meeting.arrived.push_back(what);
    if (static_cast<int>(meeting.arrived.size()) < meeting.members) return;
    const Nanos lasts = duration_of_next(what);
    for (const Finished& member : meeting.arrived) {
      HR_CHECK(duration_of_next(member) == lasts, "the members of a group meet for different collectives");
      queue_.add(now + lasts.value, member);
    }
    meeting.arrived.clear();
  }

  // Duration of the collective that the device has come to.
  Nanos duration_of_next(const Finished& what) const {
    const State& state = states_[what.device];
    return state.device
        ->durations[static_cast<std::size_t>(state.device->timed->collective_index(current(state, what)))];
  }

  static std::size_t current(const State& state, const Finished& what) {
    const std::size_t s = at(what.stream);
    return static_cast<std::size_t>(
        state.device->timed->stream(s)[static_cast<std::size_t>(state.finished[s])]);
  }

  void finish(const Finished& what, std::int64_t now) {
    State& state = states_[what.device];
    const std::size_t s = at(what.stream);
    const std::size_t i = current(state, what);
    if (const TimedProgram& timed = *state.device->timed; timed.fed() && timed.turn(i) >= 0) ++state.turns;
    Span& span = state.times.spans[i];
    state.advance_to(now);
    state.running[s] = false;
    ++state.finished[s];
    span.end = now;
    state.times.busy[s] += Nanos(span.end - span.begin);
    state.times.end = Nanos(now);
  }

  static void check_complete(const State& state) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const auto& stream = state.device->timed->stream(s);
      const auto next = static_cast<std::size_t>(state.finished[s]);
      if (next < stream.size()) {
        throw Error(Code::kInternal, "program " + state.device->timed->program().name +
                                         " never comes to instruction " + std::to_string(stream[next]) +
                                         " of stream " + std::string(name(static_cast<StreamKind>(s))));
      }
    }
  }

  std::span<const SimDevice> devices_;
  std::vector<State> states_;
  std::vector<Meeting> meetings_;
  std::vector<Host> hosts_;  // empty: each device computes as if it were alone
  EventQueue<Finished> queue_;
};

// Makes two uniform numbers in (0, 1) from the seed (SplitMix64), and a normal one from these (Box and
// Muller).
double normal(std::uint64_t seed) {
  const auto next = [&] {
    seed += 0x9e3779b97f4a7c15;
    std::uint64_t z = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  };
  const double radius = std::sqrt(-2 * std::log(next()));
  return radius * std::cos(2 * std::numbers::pi * next());
}

}  // namespace

Nanos SimDevice::computing(std::size_t instr) const {
  const Nanos as_modelled = timed->duration(instr);
  const StreamKind stream = timed->program().instrs[instr].stream;
  const bool computes = stream == StreamKind::kCube || stream == StreamKind::kVector;
  if (!computes || (slowdown == 1 && jitter == 0)) return as_modelled;
  const double factor = jitter > 0 ? std::exp(jitter * normal(seed ^ (instr * 0xd6e8feb86659fd93))) : 1;
  return Nanos(std::llround(static_cast<double>(as_modelled.value) * slowdown * factor));
}

std::vector<SimTimes> run_event_loop(std::span<const SimDevice> devices, std::span<const int> meetings,
                                     double cores) {
  return EventLoop(devices, meetings, cores).run();
}

}  // namespace hyperrun
