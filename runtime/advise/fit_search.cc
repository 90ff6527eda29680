#include "runtime/advise/fit_search.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/advise/fit_words.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/release.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/job_check.h"

namespace hyperrun {
namespace {

constexpr std::chrono::seconds kPatience{2};  // of people, before they want to know what goes on

// Together: more are not easier to follow than a new job.
constexpr std::size_t kMostChanges = 3;

constexpr int kMostTrials = 32;  // of several changes together

// What is foreseen comes true to a percent or two: where fewer can be compiled than this, and a few
// micro-batches take much less than all, it says which.
constexpr std::int64_t kFewCompilations = 20, kManyTimesFew = 4;

Nanos scaled(Nanos time, Nanos by, Nanos of) {
  return Nanos(static_cast<std::int64_t>(static_cast<double>(time.value) * static_cast<double>(by.value) /
                                         static_cast<double>(std::max(of, Nanos(1)).value)));
}

}  // namespace

Plan FitPurpose::compiled(const Job& job) const {
  return generates ? compile_generation(job).plan : hyperrun::compile(job).plan;
}

std::vector<Family> FitPurpose::changes(const Job& job, const Plan& plan, Effort most) const {
  std::vector<Family> all = generates ? changes_of_generation(job) : changes_of_training(job, plan);
  Job planned = job;
  planned.memory.policy = "hyperoffload";
  if (effort_like(planned, plan, job) > most)
    std::ranges::move(offloading(job, "reactive", generates), std::back_inserter(all));
  std::ranges::move(offloading(job, "hyperoffload", generates), std::back_inserter(all));
  return all;
}

Nanos FitPurpose::time(const Job& job, const Plan& plan) const {
  const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
  return simulate(plan, program(), job.supernode, topology).makespan;
}

bool all_fits(const Plan& plan, const SupernodeSpec& spec) {
  return plan.peak() <= spec.hbm && plan.of_all_devices(Tier::kPool) <= spec.pool &&
         plan.of_all_devices(Tier::kFlash) <= spec.flash;
}

FitSearch::FitSearch(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, Lack lack, Effort most)
    : loaded_(loaded),
      plan_(plan),
      purpose_(purpose),
      lack_(lack),
      most_(most),
      families_(purpose.changes(loaded.job, plan, most)) {
  as_it_is_.job = loaded.job;
  as_it_is_.needs = lack.needs(plan);
}

void FitSearch::run() {
  prepare_to_foresee();
  try_each();
  try_several();
}

bool FitSearch::affords(const Job& job) const {
  return effort_ + effort_like(job, plan_, loaded_.job) <= most_;
}

Plan FitSearch::compiled(const Job& job) {
  ++compilations_;
  const Effort reckoned = effort_like(job, plan_, loaded_.job);
  effort_ += reckoned;  // also of one that is refused half way
  Plan plan = purpose_.compiled(job);
  // Transfers and gathers make its Programs longer than those that it was reckoned by.
  effort_ += std::max(Effort(0), effort_like(job, plan, job) - reckoned);
  return plan;
}

void FitSearch::begin_time_as_it_is() {
  begun_ = std::async(std::launch::async, [this] { return purpose_.time(loaded_.job, plan_); });
}

Nanos FitSearch::time_as_it_is() {
  if (begun_.valid()) as_it_is_.time = begun_.get();
  if (as_it_is_.time == Nanos(0)) as_it_is_.time = purpose_.time(loaded_.job, plan_);
  return as_it_is_.time;
}

// --- few micro-batches ------------------------------------------------------------------------------------

// As large as the job's.
Job FitSearch::of_few(Job job) const {
  job.training.batch = job.training.batch / job.training.micro_batches * few_;
  job.training.micro_batches = few_;
  return job;
}

void FitSearch::prepare_to_foresee() {
  const Job& job = loaded_.job;
  if (purpose_.generates || effort_like(job, plan_, job) * kFewCompilations <= most_) return;
  few_ = std::max(2, static_cast<std::int32_t>(job.parallel.pipeline.stages.size()));
  few_as_it_is_.job = of_few(job);
  const bool pays = job.training.micro_batches >= kManyTimesFew * few_ && affords(few_as_it_is_.job);
  few_ = pays && measure(few_as_it_is_) == Outcome::kDone ? few_ : 0;
}

// By as much as with few micro-batches. What moves does so for the budget, whatever there is of them.
FitSearch::Outcome FitSearch::foresee(Trial& trial) {
  if (!check_job(trial.job, loaded_.source).empty()) return Outcome::kIllegal;
  Trial few{.what = trial.what, .job = of_few(trial.job)};
  if (const Outcome outcome = measure(few); outcome != Outcome::kDone) return outcome;
  const bool moves = trial.job.memory.policy != "none";
  trial.needs = moves ? few.needs : as_it_is_.needs + (few.needs - few_as_it_is_.needs);
  trial.fits = few.fits && (moves || trial.needs <= lack_.budget);
  const std::int64_t cuts = trial.job.training.micro_batches,
                     cuts_as_it_is = loaded_.job.training.micro_batches;
  trial.time = scaled(time_as_it_is(), few.time * cuts, few_as_it_is_.time * cuts_as_it_is);
  return Outcome::kDone;
}

// --- one ------------------------------------------------------------------------------------------------

void FitSearch::try_each() {
  for (std::size_t f = 0; f < families_.size(); ++f)
    for (const Change& change : families_[f].changes) {
      const std::size_t before = options_.size();
      try_one(change, f);
      if (options_.size() > before && options_.back().alone.fits) break;
    }
}

void FitSearch::try_one(const Change& change, std::size_t family) {
  Trial trial{.changes = {options_.size()}, .what = change.what, .job = loaded_.job};
  change.apply(trial.job);
  const Outcome outcome = few_ > 0 ? foresee(trial) : measure(trial);
  if (outcome == Outcome::kTooLong) leave_out(trial);
  if (outcome != Outcome::kDone || (!trial.fits && trial.needs >= as_it_is_.needs)) return;
  if (trial.fits && few_ == 0) add_enough(trial);
  options_.push_back({&change, family, std::move(trial)});
}

void FitSearch::leave_out(const Trial& trial) {
  if (trial.changes.size() > 1)
    ++untried_together_;
  else
    untried_.push_back(trial.what);
}

// --- several --------------------------------------------------------------------------------------------

Trial FitSearch::trial_of(const ChangeSet& changes) const {
  Trial trial{.changes = changes, .job = loaded_.job};
  for (const std::size_t c : changes) {
    trial.what += (trial.what.empty() ? "" : " and ") + options_[c].change->what;
    options_[c].change->apply(trial.job);
  }
  return trial;
}

// Where all is foreseen, also one alone; and what should not fit is not compiled to see that.
void FitSearch::try_several() {
  if (options_.empty()) return;
  (void)time_as_it_is();
  int trials = 0;
  for (const Promise& next : promises()) {
    if (is_pointless(next) || (few_ > 0 && !next.fits)) continue;
    Trial trial = trial_of(next.changes);
    const Outcome outcome = trials < kMostTrials ? measure(trial) : Outcome::kTooLong;
    if (outcome == Outcome::kTooLong)
      leave_out(trial);
    else
      ++trials;
    if (outcome == Outcome::kDone && trial.fits) add_enough(std::move(trial));
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
    if (more.size() > 1 || few_ > 0) list.push_back(promise(more));
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

void FitSearch::tell_progress(const Trial& trial) const {
  if (!trial.what.empty() && std::chrono::steady_clock::now() - began_ > kPatience)
    std::fprintf(stderr, "does not fit; trying what would: %s\n", trial.what.c_str());
}

FitSearch::Outcome FitSearch::measure(Trial& trial) try {
  if (const auto known = std::ranges::find(measured_, trial.job, &Trial::job); known != measured_.end()) {
    Trial same = *known;
    same.changes = std::move(trial.changes), same.what = std::move(trial.what);
    trial = std::move(same);
    return Outcome::kDone;
  }
  if (!check_job(trial.job, loaded_.source).empty()) return Outcome::kIllegal;
  if (!affords(trial.job)) return Outcome::kTooLong;
  tell_progress(trial);
  Plan plan = compiled(trial.job);
  trial.fits = all_fits(plan, trial.job.supernode);
  trial.needs = lack_.needs(plan);
  trial.time = purpose_.time(trial.job, plan);
  if (trial.fits && trial.job.memory != loaded_.job.memory)
    trial.beyond = words_of_beyond(plan, purpose_.program());
  release(plan);
  measured_.push_back(trial);
  return Outcome::kDone;
} catch (const Error& e) {
  if (e.code() == Code::kInternal) throw;
  return Outcome::kIllegal;
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

// Of those that help at all, the one first whose best comes down furthest.
std::vector<const Family*> FitSearch::by_what_helps() const {
  std::vector<std::pair<Bytes, const Family*>> order;
  for (std::size_t f = 0; f < families_.size(); ++f) {
    std::optional<Bytes> least;
    for (const Option& o : options_)
      if (o.family == f) least = least ? std::min(*least, o.alone.needs) : o.alone.needs;
    if (least) order.emplace_back(*least, &families_[f]);
  }
  std::ranges::stable_sort(order, {}, &std::pair<Bytes, const Family*>::first);
  std::vector<const Family*> families;
  for (const auto& [needs, family] : order) families.push_back(family);
  return families;
}

Trial FitSearch::together() {
  if (few_ > 0) return together_as_foreseen();
  Trial base = as_it_is_;
  for (const Family* family : by_what_helps()) {
    Trial lowest = base;
    for (const Change& change : family->changes) {
      Trial trial{.what = base.what + (base.what.empty() ? "" : " and ") + change.what, .job = base.job};
      change.apply(trial.job);
      if (measure(trial) == Outcome::kDone && trial.needs < lowest.needs) lowest = std::move(trial);
      if (lowest.fits) return lowest;
    }
    base = std::move(lowest);
  }
  return base;
}

// The one that should come down furthest of all that can be compiled yet.
Trial FitSearch::together_as_foreseen() {
  std::vector<Promise> list = promises();
  std::ranges::stable_sort(list, {}, &Promise::needs);
  for (const Promise& next : list) {
    Trial trial = trial_of(next.changes);
    const Outcome outcome = measure(trial);
    if (outcome == Outcome::kDone) return trial;
    if (outcome == Outcome::kTooLong) break;
  }
  return as_it_is_;
}

}  // namespace hyperrun
