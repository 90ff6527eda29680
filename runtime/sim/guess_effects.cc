#include "runtime/sim/guess_effects.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

#include "runtime/base/parallel.h"

namespace hyperrun {
namespace {

using Clock = std::chrono::steady_clock;

void count(EvidenceCounts& counts, Evidence evidence) {
  if (evidence == Evidence::kMeasured) ++counts.measured;
  if (evidence == Evidence::kDataSheet) ++counts.data_sheet;
  if (evidence == Evidence::kPlaceholder) ++counts.guessed;
}

GuessEffect unsimulated(const FigurePath& at, const Figure& f) {
  return {at.path,           at.name,         f.value,          f.low,         f.high,
          at.words(f.value), at.words(f.low), at.words(f.high), f.range_source};
}

// A guess without a range is known by its name alone.
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

Machine with(const Machine& machine, const std::vector<FigurePath>& figures, const GuessEffect& guess,
             double value) {
  Machine changed = machine;
  std::ranges::find(figures, guess.path, &FigurePath::path)->in(changed).value = value;
  return changed;
}

// Guesses that were not simulated in time go to a list of their own; the rest is in the order of what hangs
// on it.
void sort_out(const std::vector<bool>& done, StepRange& range) {
  std::vector<GuessEffect> simulated;
  for (std::size_t i = 0; i < done.size(); ++i)
    if (done[i])
      simulated.push_back(range.guesses[i]);
    else
      range.not_simulated.push_back(range.guesses[i].name);
  std::ranges::stable_sort(simulated, std::greater{}, &GuessEffect::swing);
  range.guesses = std::move(simulated);
}

double value_at(RangeEnd end, const GuessEffect& g, Nanos step) {
  const bool low_is_longer = g.at_low > g.at_high;
  const bool to_low = (end == RangeEnd::kWorse) == low_is_longer;
  const Nanos there = to_low ? g.at_low : g.at_high;
  // Some figures are best where they are.
  const bool changes = end == RangeEnd::kWorse ? there > step : there < step;
  return !changes ? g.value : to_low ? g.low : g.high;
}

}  // namespace

Machine machine_at(RangeEnd end, const SupernodeSpec& spec, const std::vector<FigurePath>& figures,
                   const StepRange& range) {
  Machine machine = machine_of(spec);
  for (const GuessEffect& g : range.guesses)
    machine = with(machine, figures, g, value_at(end, g, range.step));
  return machine;
}

TimeOn time_of(const Plan& plan, std::string program, const SupernodeSpec& spec, const SimOptions& sim) {
  TimedStep known = timed(plan, program, spec, sim);
  return [&plan, program = std::move(program), sim, known = std::move(known)](const SupernodeSpec& there) {
    return timed(plan, program, there, sim, &known).makespan;
  };
}

StepRange time_range(const SupernodeSpec& spec, const std::vector<FigurePath>& figures, const TimeOn& time,
                     const GuessOptions& options) {
  const Machine machine = machine_of(spec);
  StepRange range{.machine = machine.name};
  list_guesses(machine, figures, range);
  const Clock::time_point begin = Clock::now();
  const auto step_on = [&](const Machine& m) {
    SupernodeSpec there = spec;
    there.machine = m;
    return time(there);
  };
  range.step = range.fastest = range.slowest = time(spec);
  const auto all = static_cast<std::int64_t>(range.guesses.size());
  std::atomic<std::int64_t> finished = 0;
  std::vector<char> done(range.guesses.size());
  parallel_for(range.guesses.size(), [&](std::size_t i) {
    if (Clock::now() - begin > std::chrono::duration<double>(options.seconds)) return;
    GuessEffect& g = range.guesses[i];
    g.at_low = step_on(with(machine, figures, g, g.low));
    g.at_high = step_on(with(machine, figures, g, g.high));
    done[i] = 1;
    if (options.progress) options.progress(++finished, all);
  });
  sort_out({done.begin(), done.end()}, range);
  parallel_for(2, [&](std::size_t end) {
    const Nanos there = step_on(machine_at(static_cast<RangeEnd>(end), spec, figures, range));
    (end == 0 ? range.fastest : range.slowest) = there;
  });
  return range;
}

}  // namespace hyperrun
