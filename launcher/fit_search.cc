#include "launcher/fit_search.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>

#include "launcher/fit_words.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/job_check.h"

namespace hyperrun {
namespace {

constexpr std::chrono::seconds kPatience{2};  // of people, before they want to know what goes on

// Together: more are not easier to follow than a new job.
constexpr std::size_t kMostChanges = 3;

constexpr int kMostTrials = 32;  // of several changes together

// The instructions of a step stand for the time of compiling and simulating it, some 20'000 to 50'000 a
// second, so that what is told does not hang on how busy the host is. Where tensors move, what moves when is
// planned in several ways: that takes some eight times as long.
constexpr std::int64_t kMostInstructions = 100'000, kPlanning = 8;

std::int64_t instructions(const Plan& plan, std::string_view program) {
  std::int64_t n = 0;
  for (const Role& role : plan.roles) n += std::ssize(role.program(program).instrs);
  return n;
}

}  // namespace

Plan Purpose::compiled(const Job& job) const {
  return generates ? compile_generation(job).plan : hyperrun::compile(job).plan;
}

std::vector<Family> Purpose::changes(const Job& job, const Plan& plan) const {
  return generates ? changes_of_generation(job) : changes_of_training(job, plan);
}

Nanos Purpose::time(const Job& job, const Plan& plan) const {
  const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
  return simulate(plan, program(), job.supernode, topology).makespan;
}

bool all_fits(const Plan& plan, const SupernodeSpec& spec) {
  return plan.peak() <= spec.hbm && plan.of_all_devices(Tier::kPool) <= spec.pool &&
         plan.of_all_devices(Tier::kFlash) <= spec.flash;
}

FitSearch::FitSearch(const LoadedJob& loaded, const Plan& plan, Purpose purpose, Lack lack)
    : loaded_(loaded),
      plan_(plan),
      purpose_(purpose),
      lack_(lack),
      families_(purpose.changes(loaded.job, plan)) {
  as_it_is_.job = loaded.job;
  as_it_is_.needs = lack.needs(plan);
}

void FitSearch::run() {
  try_each();
  try_several();
}

void FitSearch::try_each() {
  for (std::size_t f = 0; f < families_.size(); ++f)
    for (const Change& change : families_[f].changes) {
      if (enough_.size() >= kOffers && !has_time()) return;
      Trial trial{.changes = {options_.size()}, .what = change.what, .job = loaded_.job};
      change.apply(trial.job);
      if (!measure(trial) || (!trial.fits && trial.needs >= as_it_is_.needs)) continue;
      const bool fits = trial.fits;
      if (fits) add_enough(trial);
      options_.push_back({&change, f, std::move(trial)});
      if (fits) break;
    }
}

bool FitSearch::has_time() const { return instructions_ < kMostInstructions; }

void FitSearch::try_several() {
  if (!has_time()) return;
  as_it_is_.time = purpose_.time(loaded_.job, plan_);
  int trials = 0;
  for (const Promise& next : promises()) {
    if (trials == kMostTrials || !has_time()) return;
    if (is_pointless(next)) continue;
    Trial trial{.changes = next.changes, .job = loaded_.job};
    for (const std::size_t c : next.changes) {
      trial.what += (trial.what.empty() ? "" : " and ") + options_[c].change->what;
      options_[c].change->apply(trial.job);
    }
    ++trials;
    if (measure(trial) && trial.fits) add_enough(std::move(trial));
  }
}

// What is likely to fit before what is not; of the former the fastest first, of the latter the smallest.
std::vector<FitSearch::Promise> FitSearch::promises() const {
  std::vector<Promise> list;
  extend({}, list);
  std::ranges::stable_sort(
      list, {}, [](const Promise& p) { return std::tuple(!p.fits, p.fits ? Bytes() : p.needs, p.time); });
  return list;
}

void FitSearch::extend(const ChangeSet& changes, std::vector<Promise>& list) const {
  if (changes.size() == kMostChanges) return;
  for (std::size_t c = changes.empty() ? 0 : changes.back() + 1; c < options_.size(); ++c) {
    if (!go_together(changes, c)) continue;
    ChangeSet more = changes;
    more.push_back(c);
    if (more.size() > 1) list.push_back(promise(more));
    extend(more, list);
  }
}

bool FitSearch::go_together(const ChangeSet& changes, std::size_t with) const {
  const auto subject = [&](std::size_t c) { return families_[options_[c].family].subject; };
  return std::ranges::none_of(changes, [&](std::size_t c) { return subject(c) == subject(with); });
}

// What each saves and costs alone, added. Offloading moves what the others leave above the budget.
FitSearch::Promise FitSearch::promise(const ChangeSet& changes) const {
  Promise sum{changes, as_it_is_.needs, false, as_it_is_.time};
  const Trial* offloaded = nullptr;
  for (const std::size_t c : changes) {
    const auto& [change, family, alone] = options_[c];
    if (change->offloads) {
      offloaded = &alone;
    } else {
      sum.needs -= as_it_is_.needs - alone.needs;
      sum.time += alone.time - as_it_is_.time;
    }
  }
  if (offloaded) {
    const double lacks = static_cast<double>((as_it_is_.needs - lack_.budget).value),
                 left = static_cast<double>(std::max(Bytes(0), sum.needs - lack_.budget).value);
    sum.time += Nanos(static_cast<std::int64_t>(
        static_cast<double>((offloaded->time - as_it_is_.time).value) * std::min(1.0, left / lacks)));
    sum.needs -= as_it_is_.needs - offloaded->needs;
  }
  sum.fits = (offloaded && offloaded->fits) || sum.needs <= lack_.budget;
  return sum;
}

// Slower than what will be told, or than a part of itself that is enough.
bool FitSearch::is_pointless(const Promise& promise) const {
  if (enough_.size() >= kOffers && promise.time >= enough_[kOffers - 1].time) return true;
  return std::ranges::any_of(enough_, [&](const Trial& t) {
    return t.time <= promise.time && std::ranges::includes(promise.changes, t.changes);
  });
}

bool FitSearch::measure(Trial& trial) try {
  if (!check_job(trial.job, loaded_.source).empty()) return false;
  if (std::chrono::steady_clock::now() - began_ > kPatience)
    std::fprintf(stderr, "does not fit; trying what would: %s\n", trial.what.c_str());
  const Plan plan = purpose_.compiled(trial.job);
  instructions_ +=
      instructions(plan, purpose_.program()) * (trial.job.memory.policy == "none" ? 1 : kPlanning);
  trial.fits = all_fits(plan, trial.job.supernode);
  trial.needs = lack_.needs(plan);
  if (trial.fits || has_time()) trial.time = purpose_.time(trial.job, plan);
  if (trial.fits && trial.job.memory != loaded_.job.memory)
    trial.beyond = words_of_beyond(plan, purpose_.program());
  return true;
} catch (const Error& e) {
  if (e.code() == Code::kInternal) throw;
  return false;
}

void FitSearch::add_enough(Trial trial) {
  const auto replaces = [](const Trial& part, const Trial& whole) {
    return part.changes.size() < whole.changes.size() && std::ranges::includes(whole.changes, part.changes) &&
           (part.time <= whole.time || to_string(part.time) == to_string(whole.time));
  };
  if (std::ranges::any_of(enough_, [&](const Trial& t) { return replaces(t, trial); })) return;
  std::erase_if(enough_, [&](const Trial& t) { return replaces(trial, t); });
  enough_.insert(std::ranges::upper_bound(enough_, trial.time, {}, &Trial::time), std::move(trial));
}

std::vector<Trial> FitSearch::best() const {
  std::vector<Trial> list(
      enough_.begin(), enough_.begin() + std::min(std::ssize(enough_), static_cast<std::ptrdiff_t>(kOffers)));
  const auto is_alone = [](const Trial& t) { return t.changes.size() == 1; };
  const auto alone = std::ranges::find_if(enough_, is_alone);
  if (alone != enough_.end() && std::ranges::none_of(list, is_alone)) list.push_back(*alone);
  return list;
}

Trial FitSearch::together() {
  std::vector<std::pair<Bytes, const Family*>> order;
  for (std::size_t f = 0; f < families_.size(); ++f) {
    std::optional<Bytes> least;
    for (const Option& o : options_)
      if (o.family == f) least = least ? std::min(*least, o.alone.needs) : o.alone.needs;
    if (least) order.emplace_back(*least, &families_[f]);
  }
  std::ranges::stable_sort(order, {}, &std::pair<Bytes, const Family*>::first);
  Trial base = as_it_is_;
  for (const auto& [needs, family] : order) {
    Trial lowest = base;
    for (const Change& change : family->changes) {
      Trial trial{.what = base.what + (base.what.empty() ? "" : " and ") + change.what, .job = base.job};
      change.apply(trial.job);
      if (measure(trial) && trial.needs < lowest.needs) lowest = std::move(trial);
      if (lowest.fits) return lowest;
    }
    base = std::move(lowest);
  }
  return base;
}

}  // namespace hyperrun
