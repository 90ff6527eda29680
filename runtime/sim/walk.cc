#include "runtime/sim/walk.h"

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

// Where a walker stands.
struct State {
  const Walker* walker = nullptr;
  std::array<std::int32_t, kStreams> finished{};  // instructions of the stream
  std::array<bool, kStreams> running{};
  std::size_t fed = 0;       // instructions that the feeder has handed over
  bool feeding = false;      // it hands over the next one
  std::int32_t turns = 0;    // instructions with turns that have finished,
  std::int32_t handed = 0;   // and that have been handed over
  std::int64_t changed = 0;  // when `running` changed last
  SimTimes times;

  bool compute_runs() const { return running[at(StreamKind::kCube)] || running[at(StreamKind::kVector)]; }
  bool communication_runs() const {
    return running[at(StreamKind::kComm)] || running[at(StreamKind::kSend)] || running[at(StreamKind::kRecv)];
  }

  // Called before anything in `running` changes.
  void advance_to(std::int64_t now) {
    if (communication_runs() && !compute_runs()) times.exposed += Nanos(now - changed);
    changed = now;
  }
};

class Walk {
 public:
  Walk(std::span<const Walker> walkers, std::span<const int> meetings, double cores) : walkers_(walkers) {
    for (const int members : meetings) meetings_.push_back({members, {}});
    states_.resize(walkers.size());
    for (std::size_t w = 0; w < walkers.size(); ++w) {
      const Walker& walker = walkers[w];
      if (cores > 0)
        hosts_.resize(std::max(hosts_.size(), static_cast<std::size_t>(walker.host) + 1), Host(cores));
      HR_CHECK(walker.durations.size() == walker.track->slots().size() &&
               walker.meetings.size() == walker.durations.size());
      for (const Nanos d : walker.durations) HR_CHECK(d.value >= 0, "time runs forward");
      states_[w].walker = &walker;
      states_[w].times.spans.resize(walker.track->size());
    }
  }

  std::vector<SimTimes> run() {
    for (std::size_t w = 0; w < states_.size(); ++w) go_on(w, 0);
    while (!queue_.empty()) {
      const auto [now, number, what] = queue_.take();
      if (what.stream == kCores) {
        look(what, now);
        continue;
      }
      HR_CHECK(now >= states_[what.walker].changed, "time runs forward");
      what.stream == kFeeder ? hand_over(states_[what.walker]) : finish(what, now);
      go_on(what.walker, now);
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
    std::uint32_t walker;
    StreamKind stream;
    std::uint32_t look = 0;
  };
  struct Host {
    explicit Host(double cores) : cores(cores) {}
    SharedCores<Finished> cores;
    std::uint32_t look = 0;  // the last that was planned, for when the next one ends; it replaces all before
  };
  struct Meeting {
    int members;
    std::vector<Finished> arrived;
  };

  // In the place of a stream: what finishes is the handing over of an instruction.
  static constexpr auto kFeeder = static_cast<StreamKind>(kStreams);
  // Then `walker` is a host, on whose cores something has ended.
  static constexpr auto kCores = static_cast<StreamKind>(kStreams + 1);

  void go_on(std::size_t w, std::int64_t now) {
    if (states_[w].walker->track->fed()) feed(w, now);
    for (std::size_t s = 0; s < kStreams; ++s) start(w, s, now);
  }

  void feed(std::size_t w, std::int64_t now) {
    State& state = states_[w];
    const Track& track = *state.walker->track;
    if (state.feeding || state.fed == track.size()) return;
    if (track.drains(state.fed) && state.turns < state.handed) return;
    if (state.finished[at(StreamKind::kRecv)] < track.arrival(state.fed)) return;
    state.feeding = true;
    queue_.add(now + track.feeding(state.fed).value, {static_cast<std::uint32_t>(w), kFeeder});
  }

  static void hand_over(State& state) {
    if (state.walker->track->turn(state.fed) >= 0) ++state.handed;
    ++state.fed;
    state.feeding = false;
  }

  static bool may_start(const State& state, std::size_t i) {
    const Track& track = *state.walker->track;
    if (!track.fed()) return true;
    return i < state.fed && (!track.in_order() || track.turn(i) < 0 || track.turn(i) == state.turns);
  }

  // The next instruction of the stream, if nothing holds it.
  void start(std::size_t w, std::size_t s, std::int64_t now) {
    State& state = states_[w];
    const Track& track = *state.walker->track;
    const auto& stream = track.stream(s);
    const auto next = static_cast<std::size_t>(state.finished[s]);
    if (state.running[s] || next == stream.size()) return;
    const auto i = static_cast<std::size_t>(stream[next]);
    for (const Event& e : track.waits(i))
      if (state.finished[at(e.stream)] < e.seq) return;
    if (!may_start(state, i)) return;

    state.advance_to(now);
    state.running[s] = true;
    state.times.spans[i].begin = now;
    const Finished what{static_cast<std::uint32_t>(w), static_cast<StreamKind>(s)};
    if (const std::int32_t slot = track.slot(i); slot < 0)
      compute(*state.walker, i, what, now);
    else
      meet(meetings_[static_cast<std::size_t>(state.walker->meetings[static_cast<std::size_t>(slot)])], what,
           now);
  }

  void compute(const Walker& walker, std::size_t instr, const Finished& what, std::int64_t now) {
    const Nanos lasts = walker.computing(instr);
    if (hosts_.empty()) return queue_.add(now + lasts.value, what);
    hosts_[static_cast<std::size_t>(walker.host)].cores.begin(now, lasts, walker.alike, what);
    look_again(walker.host);
  }

  void look_again(int host) {
    Host& h = hosts_[static_cast<std::size_t>(host)];
    if (const auto next = h.cores.next())
      queue_.add(*next, {static_cast<std::uint32_t>(host), kCores, ++h.look});
  }

  // At those who compute on a host.
  void look(const Finished& at, std::int64_t now) {
    Host& h = hosts_[at.walker];
    if (at.look != h.look) return;  // something has begun since
    const std::vector<Finished> ended = h.cores.ended(now);
    for (const Finished& what : ended) finish(what, now);
    for (const Finished& what : ended) go_on(what.walker, now);
    look_again(static_cast<int>(at.walker));
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

  // Of the collective that it has come to.
  Nanos duration_of_next(const Finished& what) const {
    const State& state = states_[what.walker];
    return state.walker->durations[static_cast<std::size_t>(state.walker->track->slot(current(state, what)))];
  }

  static std::size_t current(const State& state, const Finished& what) {
    const std::size_t s = at(what.stream);
    return static_cast<std::size_t>(
        state.walker->track->stream(s)[static_cast<std::size_t>(state.finished[s])]);
  }

  void finish(const Finished& what, std::int64_t now) {
    State& state = states_[what.walker];
    const std::size_t s = at(what.stream);
    const std::size_t i = current(state, what);
    if (const Track& track = *state.walker->track; track.fed() && track.turn(i) >= 0) ++state.turns;
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
      const auto& stream = state.walker->track->stream(s);
      const auto next = static_cast<std::size_t>(state.finished[s]);
      if (next < stream.size()) {
        throw Error(Code::kInternal, "program " + state.walker->track->program().name +
                                         " never comes to instruction " + std::to_string(stream[next]) +
                                         " of stream " + std::string(name(static_cast<StreamKind>(s))));
      }
    }
  }

  std::span<const Walker> walkers_;
  std::vector<State> states_;
  std::vector<Meeting> meetings_;
  std::vector<Host> hosts_;  // none: everybody computes alone
  EventQueue<Finished> queue_;
};

// Two uniform numbers in (0, 1) from one (SplitMix64), a normal one from these (Box and Muller).
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

Nanos Walker::computing(std::size_t instr) const {
  const Nanos as_modelled = track->duration(instr);
  const StreamKind stream = track->program().instrs[instr].stream;
  const bool computes = stream == StreamKind::kCube || stream == StreamKind::kVector;
  if (!computes || (slowdown == 1 && jitter == 0)) return as_modelled;
  const double factor = jitter > 0 ? std::exp(jitter * normal(seed ^ (instr * 0xd6e8feb86659fd93))) : 1;
  return Nanos(std::llround(static_cast<double>(as_modelled.value) * slowdown * factor));
}

std::vector<SimTimes> walk(std::span<const Walker> walkers, std::span<const int> meetings, double cores) {
  return Walk(walkers, meetings, cores).run();
}

}  // namespace hyperrun
