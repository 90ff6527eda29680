#include "runtime/advise/fit_search.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/advise/offload_text.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/release.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/job_check.h"

namespace hyperrun {
namespace {

constexpr std::chrono::seconds kPatience{2};  // time until progress is told

// Most changes in a combination: more are as hard to follow as a new job.
constexpr std::size_t kMostChanges = 3;

constexpr int kMostAttempts = 32;  // combinations measured

// Predictions from a small job are right within one or two percent. They are used if the budget allows fewer
// compilations than kFewCompilations and the small job has many times fewer micro-batches.
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

FitSearch::FitSearch(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, Shortfall shortfall,
                     SearchLimits most)
    : loaded_(loaded),
      plan_(plan),
      purpose_(purpose),
      shortfall_(shortfall),
      most_(most.effort),
      end_(TimeLimit::Clock::now() + most.time),
      families_(purpose.changes(loaded.job, plan, most.effort)) {
  baseline_.job = loaded.job;
  baseline_.needs = shortfall.needs(plan);
}

void FitSearch::run() {
  prepare_small_job();
  try_each();
  try_several();
}

bool FitSearch::affords(const Job& job) const {
  return !is_cut_off() && effort_ + effort_like(job, plan_, loaded_.job) <= most_;
}

Plan FitSearch::compiled(const Job& job) {
  ++compilations_;
  const Effort reckoned = effort_like(job, plan_, loaded_.job);
  effort_ += reckoned;  // counts even if the compiler refuses the job
  const TimeLimit limit(end_);
  Plan plan = purpose_.compiled(job);
  // Transfers and gathers make the Programs longer than estimated.
  effort_ += std::max(Effort(0), effort_like(job, plan, job) - reckoned);
  return plan;
}

void FitSearch::start_baseline() {
  baseline_future_ = std::async(std::launch::async, [this] { return purpose_.time(loaded_.job, plan_); });
}

Nanos FitSearch::baseline_time() {
  if (baseline_future_.valid()) baseline_.time = baseline_future_.get();
  if (baseline_.time == Nanos(0)) baseline_.time = purpose_.time(loaded_.job, plan_);
  return baseline_.time;
}

// --- few micro-batches ------------------------------------------------------------------------------------

// The same job with few micro-batches of the same size.
Job FitSearch::with_few_micro_batches(Job job) const {
  job.training.batch = job.training.batch / job.training.micro_batches * small_micro_batches_;
  job.training.micro_batches = small_micro_batches_;
  return job;
}

void FitSearch::prepare_small_job() {
  const Job& job = loaded_.job;
  if (purpose_.generates || effort_like(job, plan_, job) * kFewCompilations <= most_) return;
  small_micro_batches_ = std::max(2, static_cast<std::int32_t>(job.parallel.pipeline.stages.size()));
  small_baseline_.job = with_few_micro_batches(job);
  const bool pays =
      job.training.micro_batches >= kManyTimesFew * small_micro_batches_ && affords(small_baseline_.job);
  small_micro_batches_ = pays && measure(small_baseline_) == Outcome::kDone ? small_micro_batches_ : 0;
}

// Predicts an attempt from its small job: memory changes by the same bytes. With offloading the plan fits the
// budget, whatever the number of micro-batches.
FitSearch::Outcome FitSearch::measure_small(Attempt& attempt) {
  if (!check_job(attempt.job, loaded_.source).empty()) return Outcome::kIllegal;
  Attempt few{.what = attempt.what, .job = with_few_micro_batches(attempt.job)};
  if (const Outcome outcome = measure(few); outcome != Outcome::kDone) return outcome;
  const bool moves = attempt.job.memory.policy != "none";
  attempt.needs = moves ? few.needs : baseline_.needs + (few.needs - small_baseline_.needs);
  attempt.fits = few.fits && (moves || attempt.needs <= shortfall_.budget);
  const std::int64_t cuts = attempt.job.training.micro_batches,
                     baseline_cuts = loaded_.job.training.micro_batches;
  attempt.time = scaled(baseline_time(), few.time * cuts, small_baseline_.time * baseline_cuts);
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
  Attempt attempt{.changes = {options_.size()}, .what = change.what, .job = loaded_.job};
  change.apply(attempt.job);
  const Outcome outcome = small_micro_batches_ > 0 ? measure_small(attempt) : measure(attempt);
  if (outcome == Outcome::kTooLong) leave_out(attempt);
  if (outcome != Outcome::kDone || (!attempt.fits && attempt.needs >= baseline_.needs)) return;
  if (attempt.fits && small_micro_batches_ == 0) add_fitting(attempt);
  options_.push_back({&change, family, std::move(attempt)});
}

void FitSearch::leave_out(const Attempt& attempt) {
  if (attempt.changes.size() > 1)
    ++untried_combinations_;
  else
    untried_.push_back(attempt.what);
}

// --- several --------------------------------------------------------------------------------------------

Attempt FitSearch::attempt_of(const ChangeSet& changes) const {
  Attempt attempt{.changes = changes, .job = loaded_.job};
  for (const std::size_t c : changes) {
    attempt.what += (attempt.what.empty() ? "" : " and ") + options_[c].change->what;
    options_[c].change->apply(attempt.job);
  }
  return attempt;
}

// With predictions single changes are compiled here too, and only if they should fit.
void FitSearch::try_several() {
  if (options_.empty()) return;
  (void)baseline_time();
  int attempts = 0;
  for (const Prediction& next : predictions()) {
    if (is_pointless(next) || (small_micro_batches_ > 0 && !next.fits)) continue;
    Attempt attempt = attempt_of(next.changes);
    const Outcome outcome = attempts < kMostAttempts ? measure(attempt) : Outcome::kTooLong;
    if (outcome == Outcome::kTooLong)
      leave_out(attempt);
    else
      ++attempts;
    if (outcome == Outcome::kDone && attempt.fits) add_fitting(std::move(attempt));
  }
}

// Likely fits come first, the fastest first; then the others, the smallest first.
std::vector<FitSearch::Prediction> FitSearch::predictions() const {
  std::vector<Prediction> list;
  extend({}, list);
  std::ranges::stable_sort(
      list, {}, [](const Prediction& p) { return std::tuple(!p.fits, p.fits ? Bytes() : p.needs, p.time); });
  return list;
}

void FitSearch::extend(const ChangeSet& changes, std::vector<Prediction>& list) const {
  if (changes.size() == kMostChanges) return;
  for (std::size_t c = changes.empty() ? 0 : changes.back() + 1; c < options_.size(); ++c) {
    if (!are_compatible(changes, c)) continue;
    ChangeSet more = changes;
    more.push_back(c);
    if (more.size() > 1 || small_micro_batches_ > 0) list.push_back(predict(more));
    extend(more, list);
  }
}

bool FitSearch::are_compatible(const ChangeSet& changes, std::size_t with) const {
  const auto subject = [&](std::size_t c) { return families_[options_[c].family].subject; };
  return std::ranges::none_of(changes, [&](std::size_t c) { return subject(c) == subject(with); });
}

// Adds up what the single changes save and cost. Offloading moves what the others leave above the budget.
FitSearch::Prediction FitSearch::predict(const ChangeSet& changes) const {
  Prediction sum{changes, baseline_.needs, false, baseline_.time};
  const Attempt* offloaded = nullptr;
  for (const std::size_t c : changes) {
    const auto& [change, family, alone] = options_[c];
    if (change->offloads) {
      offloaded = &alone;
    } else {
      sum.needs -= baseline_.needs - alone.needs;
      sum.time += alone.time - baseline_.time;
    }
  }
  if (offloaded) {
    const double lacks = static_cast<double>((baseline_.needs - shortfall_.budget).value),
                 left = static_cast<double>(std::max(Bytes(0), sum.needs - shortfall_.budget).value);
    sum.time += Nanos(static_cast<std::int64_t>(
        static_cast<double>((offloaded->time - baseline_.time).value) * std::min(1.0, left / lacks)));
    sum.needs -= baseline_.needs - offloaded->needs;
  }
  sum.fits = (offloaded && offloaded->fits) || sum.needs <= shortfall_.budget;
  return sum;
}

// True if slower than the offers so far, or than a part of itself that fits.
bool FitSearch::is_pointless(const Prediction& prediction) const {
  if (fitting_.size() >= kOffers && prediction.time >= fitting_[kOffers - 1].time) return true;
  return std::ranges::any_of(fitting_, [&](const Attempt& t) {
    return t.time <= prediction.time && std::ranges::includes(prediction.changes, t.changes);
  });
}

void FitSearch::report_progress(const Attempt& attempt) const {
  if (!attempt.what.empty() && std::chrono::steady_clock::now() - began_ > kPatience)
    std::fprintf(stderr, "does not fit; trying what would: %s\n", attempt.what.c_str());
}

FitSearch::Outcome FitSearch::measure(Attempt& attempt) try {
  if (const auto known = std::ranges::find(measured_, attempt.job, &Attempt::job); known != measured_.end()) {
    Attempt same = *known;
    same.changes = std::move(attempt.changes), same.what = std::move(attempt.what);
    attempt = std::move(same);
    return Outcome::kDone;
  }
  if (!check_job(attempt.job, loaded_.source).empty()) return Outcome::kIllegal;
  if (!affords(attempt.job)) return Outcome::kTooLong;
  report_progress(attempt);
  Plan plan = compiled(attempt.job);
  attempt.fits = all_fits(plan, attempt.job.supernode);
  attempt.needs = shortfall_.needs(plan);
  attempt.time = purpose_.time(attempt.job, plan);
  if (attempt.fits && attempt.job.memory != loaded_.job.memory)
    attempt.beyond = describe_offload(plan, purpose_.program());
  release(plan);
  measured_.push_back(attempt);
  return Outcome::kDone;
} catch (const OutOfTime&) {
  return Outcome::kTooLong;
} catch (const Error& e) {
  if (e.code() == Code::kInternal) throw;
  return Outcome::kIllegal;
}

void FitSearch::add_fitting(Attempt attempt) {
  const auto replaces = [](const Attempt& part, const Attempt& whole) {
    return part.changes.size() < whole.changes.size() && std::ranges::includes(whole.changes, part.changes) &&
           (part.time <= whole.time || to_string(part.time) == to_string(whole.time));
  };
  if (std::ranges::any_of(fitting_, [&](const Attempt& t) { return replaces(t, attempt); })) return;
  std::erase_if(fitting_, [&](const Attempt& t) { return replaces(attempt, t); });
  fitting_.insert(std::ranges::upper_bound(fitting_, attempt.time, {}, &Attempt::time), std::move(attempt));
}

std::vector<Attempt> FitSearch::best() const {
  std::vector<Attempt> list(
      fitting_.begin(),
      fitting_.begin() + std::min(std::ssize(fitting_), static_cast<std::ptrdiff_t>(kOffers)));
  const auto is_alone = [](const Attempt& t) { return t.changes.size() == 1; };
  const auto alone = std::ranges::find_if(fitting_, is_alone);
  if (alone != fitting_.end() && std::ranges::none_of(list, is_alone)) list.push_back(*alone);
  return list;
}

// Families that help, the one with the lowest memory first.
std::vector<const Family*> FitSearch::families_by_effect() const {
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

Attempt FitSearch::combine_all() {
  if (small_micro_batches_ > 0) return combine_predicted();
  Attempt base = baseline_;
  for (const Family* family : families_by_effect()) {
    Attempt lowest = base;
    for (const Change& change : family->changes) {
      Attempt attempt{.what = base.what + (base.what.empty() ? "" : " and ") + change.what, .job = base.job};
      change.apply(attempt.job);
      if (measure(attempt) == Outcome::kDone && attempt.needs < lowest.needs) lowest = std::move(attempt);
      if (lowest.fits) return lowest;
    }
    base = std::move(lowest);
  }
  return base;
}

// The combination with the lowest predicted memory that can still be compiled.
Attempt FitSearch::combine_predicted() {
  std::vector<Prediction> list = predictions();
  std::ranges::stable_sort(list, {}, &Prediction::needs);
  for (const Prediction& next : list) {
    Attempt attempt = attempt_of(next.changes);
    const Outcome outcome = measure(attempt);
    if (outcome == Outcome::kDone) return attempt;
    if (outcome == Outcome::kTooLong) break;
  }
  return baseline_;
}

}  // namespace hyperrun
