#include "runtime/sim/guess_effects.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "runtime/base/parallel.h"

namespace hyperrun {
namespace {

// Number of instructions that are simulated in about half a minute on two cores.
constexpr std::size_t kWalkedInTime = 60'000'000;
constexpr std::size_t kFewest = 4;  // number of guesses simulated for the largest Programs

void count(EvidenceCounts& counts, Evidence evidence) {
  if (evidence == Evidence::kMeasured) ++counts.measured;
  if (evidence == Evidence::kDataSheet) ++counts.data_sheet;
  if (evidence == Evidence::kPlaceholder) ++counts.guessed;
}

GuessEffect unsimulated(const FigurePath& at, const Figure& f) {
  return {at.path,
          at.name,
          f.value,
          f.low,
          f.high,
          at.describe(f.value),
          at.describe(f.low),
          at.describe(f.high),
          f.range_source};
}

// A guess without a range is listed by name alone.
void list_guesses(const Machine& machine, const std::vector<FigurePath>& figures, StepRange& range) {
  Machine m = machine;
  for (const FigurePath& at : figures) {
    const Figure& f = at.in(m);
    count(range.counts, f.evidence);
    if (f.evidence != Evidence::kPlaceholder) continue;
    if (f.has_range())
      range.guesses.push_back(unsimulated(at, f));
    else
      range.without_range.push_back(at.name);
  }
}

Machine with(const Machine& machine, const FigurePath& at, double value) {
  Machine changed = machine;
  at.in(changed).value = value;
  return changed;
}

Machine with(const Machine& machine, const std::vector<FigurePath>& figures, const GuessEffect& guess,
             double value) {
  return with(machine, *std::ranges::find(figures, guess.path, &FigurePath::path), value);
}

// Bytes of memory that a device has. If two machines differ in one figure, the one with more bytes has more
// room.
double room(const Machine& m) { return m.hbm_of_jobs() + m.pool.capacity.value + m.flash.capacity.value; }

// Chooses the guesses to simulate: the first `most` that can change the time. Guesses about room keep the
// present time; the rest is listed by name.
std::vector<std::size_t> to_simulate(const Machine& machine, const std::vector<FigurePath>& figures,
                                     std::size_t most, StepRange& range) {
  std::vector<GuessEffect> kept;
  std::vector<std::size_t> list;
  for (GuessEffect& g : range.guesses) {
    const bool is_of_room = room(with(machine, figures, g, g.low)) != room(with(machine, figures, g, g.high));
    if (!is_of_room && list.size() == most) {
      range.not_simulated.push_back(g.name);
      continue;
    }
    if (!is_of_room) list.push_back(kept.size());
    g.at_low = g.at_high = range.step;
    kept.push_back(std::move(g));
  }
  range.guesses = std::move(kept);
  return list;
}

double value_at(RangeEnd end, const GuessEffect& g, Nanos step, double room_low, double room_high) {
  const bool is_worse = end == RangeEnd::kWorse;
  if (g.at_low == step && g.at_high == step) {
    if (room_low == room_high) return g.value;
    return (room_low < room_high) == is_worse ? g.low : g.high;
  }
  const bool to_low = is_worse == (g.at_low > g.at_high);
  const Nanos there = to_low ? g.at_low : g.at_high;
  // Some figures are best at their present value.
  const bool changes = is_worse ? there > step : there < step;
  return !changes ? g.value : to_low ? g.low : g.high;
}

}  // namespace

MemoryUse memory_use(const Plan& plan) { return {plan.peak(), plan.of_all_devices(Tier::kPool)}; }

bool has_room(const Machine& machine, std::int32_t devices, const MemoryUse& use) {
  const std::int64_t host = machine.devices_of_a_host();
  const auto on_hosts = static_cast<double>((devices + host - 1) / host * host);
  return static_cast<double>(use.hbm.value) <= machine.hbm_of_jobs() &&
         (use.pool.value == 0 ||
          static_cast<double>(use.pool.value) <= machine.pool.capacity.value * on_hosts);
}

ProgramTime::ProgramTime(const Plan& plan, std::string program, const SupernodeSpec& spec,
                         const SimOptions& sim)
    : plan_(plan), program_(std::move(program)), sim_(sim), known_(timed(plan, program_, spec, sim)) {}

Nanos ProgramTime::operator()(const SupernodeSpec& spec) const {
  return timed(plan_, program_, spec, sim_, &known_).makespan;
}

std::size_t ProgramTime::guesses_in_time() const {
  return std::max(kFewest, kWalkedInTime / (2 * std::max<std::size_t>(1, known_.durations.size())));
}

Machine machine_at(RangeEnd end, const SupernodeSpec& spec, const std::vector<FigurePath>& figures,
                   const StepRange& range) {
  Machine machine = machine_of(spec);
  for (const GuessEffect& g : range.guesses) {
    const double low = room(with(machine, figures, g, g.low)), high = room(with(machine, figures, g, g.high));
    machine = with(machine, figures, g, value_at(end, g, range.step, low, high));
  }
  return machine;
}

Machine with_least_room(const SupernodeSpec& spec, const std::vector<FigurePath>& figures) {
  Machine machine = machine_of(spec);
  for (const FigurePath& at : figures) {
    const Figure f = at.in(machine);
    if (!f.has_range()) continue;
    for (const double value : {f.low, f.high})
      if (const Machine there = with(machine, at, value); room(there) < room(machine)) machine = there;
  }
  return machine;
}

StepRange time_range(const SupernodeSpec& spec, const std::vector<FigurePath>& figures, const TimeOn& time,
                     const GuessOptions& options) {
  const Machine machine = machine_of(spec);
  StepRange range{.machine = machine.name};
  list_guesses(machine, figures, range);
  const auto step_on = [&](const Machine& m) {
    SupernodeSpec there = spec;
    there.machine = m;
    return time(there);
  };
  const auto fits = [&](const Machine& m) { return has_room(m, spec.devices, options.use); };
  range.step = range.fastest = range.slowest = time(spec);
  const std::vector<std::size_t> list = to_simulate(machine, figures, options.most, range);
  std::mutex telling;
  std::int64_t finished = 0;
  parallel_for(list.size(), [&](std::size_t i) {
    GuessEffect& g = range.guesses[list[i]];
    g.at_low = step_on(with(machine, figures, g, g.low));
    g.at_high = step_on(with(machine, figures, g, g.high));
    const std::lock_guard lock(telling);
    if (options.progress) options.progress(++finished, std::ssize(list));
  });
  for (GuessEffect& g : range.guesses) {
    g.fits_low = fits(with(machine, figures, g, g.low));
    g.fits_high = fits(with(machine, figures, g, g.high));
  }
  std::ranges::stable_sort(range.guesses, std::greater{}, &GuessEffect::swing);
  parallel_for(2, [&](std::size_t i) {
    const Machine there = machine_at(static_cast<RangeEnd>(i), spec, figures, range);
    (i == 0 ? range.fastest : range.slowest) = step_on(there);
    (i == 0 ? range.fits_fastest : range.fits_slowest) = fits(there);
  });
  return range;
}

}  // namespace hyperrun
