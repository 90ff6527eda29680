#include "runtime/compile/move.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/events.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/estimate.h"
#include "runtime/offload/apply.h"
#include "runtime/offload/policy.h"

namespace hyperrun {
namespace {

// How often a Program is planned again for less memory, because what lives at once found no places in it.
constexpr int kAttempts = 16;

using Names = std::set<std::string>;
using Policy = Absences (*)(const OffloadProblem&);

void place_and_order(Program& program, const StatePlaces& places) {
  place_buffers(program, places);
  add_events(program);
}

std::vector<Category> movable_categories(const MemorySpec& memory) {
  std::vector<std::string> names = memory.tensors;
  if (names.empty() && memory.policy == "weights") names = {"weights"};
  if (names.empty()) names = {"weights", "gradients", "optimizer", "activations"};
  std::vector<Category> list;
  for (std::size_t c = 0; c < kCategories; ++c)
    if (std::ranges::find(names, name(static_cast<Category>(c))) != names.end())
      list.push_back(static_cast<Category>(c));
  return list;
}

class Moving {
 public:
  Moving(std::vector<Program>& programs, const Job& job, int device)
      : programs_(programs),
        memory_(job.memory),
        machine_(machine_of(job.supernode)),
        device_(device),
        budget_(job.supernode.hbm),
        tier_(memory_.tier == "flash" ? Tier::kFlash : Tier::kPool),
        movable_(movable_categories(memory_)) {}

  StatePlaces run() {
    const auto train = std::ranges::find(programs_, "train", &Program::name);
    HR_CHECK(train != programs_.end());
    if (!fits_as_it_is(*train)) homes_ = move(*train, true);
    const StatePlaces places = state_places();
    for (Program& p : programs_) {
      if (&p != &*train && !fits(p, places)) move(p, false);
      place_and_order(p, places);
    }
    return places;
  }

 private:
  // State lies where its home is, by all Programs.
  StatePlaces state_places() const {
    StatePlaces places;
    for (const Program& p : programs_) place_state(with_homes(p), places);
    return places;
  }

  Program with_homes(const Program& program) const {
    Program p;
    for (const Buffer& b : program.buffers)
      if (b.state) {
        p.buffers.push_back(b);
        if (homes_.contains(b.name)) p.buffers.back().tier = tier_;
      }
    return p;
  }

  bool fits_as_it_is(const Program& program) const {
    if (memory_.policy == "none") return true;
    Program p = program;
    place_buffers(p, state_places());
    return p.peak[index_of(Tier::kHbm)] <= budget_;
  }

  bool uses_homes(const Program& program) const {
    return std::ranges::any_of(program.buffers,
                               [&](const Buffer& b) { return b.state && homes_.contains(b.name); });
  }

  bool fits(const Program& program, const StatePlaces& places) const {
    if (memory_.policy == "none") return true;
    if (uses_homes(program)) return false;
    Program p = program;
    place_buffers(p, places);
    return p.peak[index_of(Tier::kHbm)] <= budget_;
  }

  // Replaces the Program; which homes it has.
  Names move(Program& program, bool new_homes) {
    const std::vector<BufferUses> uses = uses_of_buffers(program, movable_);
    const Timeline timeline = timeline_of(program, estimate_durations(program, machine_, device_));
    std::vector<Policy> policies{plan_by_gaps, plan_by_next_use};
    if (memory_.policy == "reactive") policies = {react};
    if (memory_.policy == "hyperoffload") policies.push_back(react);
    std::optional<Attempt> best;
    for (const Policy policy : policies) {
      Attempt attempt = try_to_fit(program, uses, timeline, policy, new_homes);
      if (!best || attempt.better_than(*best, budget_)) best = std::move(attempt);
    }
    program = std::move(best->program);
    return best->homes;
  }

  struct Attempt {
    Program program;  // moved, without places
    Names homes;
    Bytes peak{};
    std::int64_t length = 0;

    bool better_than(const Attempt& other, Bytes budget) const {
      const bool fits = peak <= budget, other_fits = other.peak <= budget;
      if (fits != other_fits) return fits;
      return fits ? length < other.length : peak < other.peak;
    }
  };

  Attempt try_to_fit(const Program& program, const std::vector<BufferUses>& uses, const Timeline& timeline,
                     Policy policy, bool new_homes) {
    OffloadProblem problem{program, uses, timeline,
                           [this](Bytes b) { return Nanos(std::llround(transfer_cost(b, tier_, machine_).nanos())); },
                           budget_ - state_elsewhere(program), homes_in(program), new_homes};
    std::optional<Attempt> best;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Attempt a = apply(program, uses, policy(problem));
      const Bytes over = a.peak - budget_;
      if (!best || a.better_than(*best, budget_)) best = std::move(a);
      if (over.value <= 0) break;
      problem.target -= over;
    }
    return std::move(*best);
  }

  Attempt apply(const Program& program, const std::vector<BufferUses>& uses, const Absences& absences) {
    Attempt a{program, {}, {}, 0};
    hyperrun::apply(a.program, uses, absences, tier_);
    for (const std::int32_t home : absences.homes)
      a.homes.insert(program.buffers[static_cast<std::size_t>(home)].name);
    const Names known = std::exchange(homes_, a.homes);
    homes_.insert(known.begin(), known.end());
    Program placed = a.program;
    place_and_order(placed, state_places());
    homes_ = known;
    a.peak = placed.peak[index_of(Tier::kHbm)];
    a.length = length_of(placed, estimate_durations(placed, machine_, device_));
    return a;
  }

  // That this Program does not use, and that has its place in HBM.
  Bytes state_elsewhere(const Program& program) const {
    Bytes own{};
    for (const Buffer& b : program.buffers)
      if (b.state && !homes_.contains(b.name)) own += Bytes((b.bytes.value + 63) / 64 * 64);
    return state_places().end[index_of(Tier::kHbm)] - own;
  }

  std::vector<std::int32_t> homes_in(const Program& program) const {
    std::vector<std::int32_t> list;
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b].state && homes_.contains(program.buffers[b].name))
        list.push_back(static_cast<std::int32_t>(b));
    return list;
  }

  std::vector<Program>& programs_;
  const MemorySpec& memory_;
  const Machine machine_;
  int device_;
  Bytes budget_;
  Tier tier_;
  std::vector<Category> movable_;
  Names homes_;
};

}  // namespace

StatePlaces move_and_place(std::vector<Program>& programs, const Job& job, int device) {
  return Moving(programs, job, device).run();
}

}  // namespace hyperrun
