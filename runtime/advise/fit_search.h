// The search for changes that make a job fit, alone or combined. Changes are measured: the changed job is
// compiled and simulated.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "runtime/advise/fit_changes.h"
#include "runtime/advise/fit_effort.h"
#include "runtime/base/time_limit.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// The purpose of a job: training or generation.
struct FitPurpose {
  bool generates = false;

  const char* program() const { return generates ? "decode" : "train"; }
  const char* unit() const { return generates ? " a pass of decode" : " a step"; }
  Plan compiled(const Job& job) const;
  // All families of changes. Offloading is last, as it takes longest to try. If planned offloading exceeds
  // `most`, offloading without a plan is added.
  std::vector<Family> changes(const Job& job, const Plan& plan, Effort most) const;
  // Simulated time of a step, or of a decode pass, whether or not it fits.
  Nanos time(const Job& job, const Plan& plan) const;
};

// The tier that is too small and its budget: of one device for HBM, of all devices otherwise.
struct Shortfall {
  Tier tier = Tier::kHbm;
  Bytes budget{};

  Bytes needs(const Plan& plan) const { return tier == Tier::kHbm ? plan.peak() : plan.of_all_devices(tier); }
};

bool all_fits(const Plan& plan, const SupernodeSpec& spec);

// Indices in FitSearch's list of options, ascending.
using ChangeSet = std::vector<std::size_t>;

struct Attempt {
  ChangeSet changes;
  std::string what;  // "add the preset sp and ..."
  Job job;           // the changed job
  Bytes needs{};     // bytes of the tier that is too small
  bool fits = false;
  Nanos time{};        // simulated, even if the job does not fit
  std::string beyond;  // describe_offload(), if it fits and changes memory
};

// Number of offers.
inline constexpr std::size_t kOffers = 3;

// If a job has many micro-batches and takes long to compile, effects of changes are predicted from a job with
// a few micro-batches, which has as many in flight. Only changes that should fit are then compiled in full.
class FitSearch {
 public:
  // `most`: nothing is compiled whose estimated effort exceeds it; the last compilation may turn out longer.
  // Beyond its time, which begins now, a compilation is given up.
  FitSearch(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, Shortfall shortfall,
            SearchLimits most = {});

  // Tries each change; in a family only up to the mildest that fits. Then tries combinations of up to three,
  // in the order of their predictions.
  void run();

  // The fastest kOffers attempts that fit, the fastest first. The fastest single change is appended if it is
  // not among them.
  std::vector<Attempt> best() const;
  bool anything_helps() const { return !options_.empty(); }
  // Combines the most effective changes one by one until the job fits, for the case that run() found nothing.
  // `what` is empty if nothing more could be compiled.
  Attempt combine_all();

  // Compiles a job similar to this one, and counts its effort. Throws OutOfTime.
  Plan compiled(const Job& job);

  TimeLimit::Clock::time_point end() const { return end_; }
  bool is_cut_off() const { return TimeLimit::Clock::now() > end_; }

  // Simulated step of the unchanged job, as if it had room. start_baseline() computes it on a thread of its
  // own.
  void start_baseline();
  Nanos baseline_time();

  // Changes that might help and were not compiled for lack of effort: single ones, the number of
  // combinations.
  const std::vector<std::string>& untried() const { return untried_; }
  int untried_combinations() const { return untried_combinations_; }

  // Effort of all compilations so far.
  Effort effort() const { return effort_; }
  int compilations() const { return compilations_; }

 private:
  struct Option {
    const Change* change;
    std::size_t family;
    Attempt alone;
  };
  struct Prediction {
    ChangeSet changes;
    Bytes needs{};
    bool fits = false;
    Nanos time{};
  };
  enum class Outcome { kDone, kIllegal, kTooLong };

  bool affords(const Job& job) const;
  Job with_few_micro_batches(Job job) const;
  void prepare_small_job();
  void try_each();
  void try_one(const Change& change, std::size_t family);
  void try_several();
  Attempt attempt_of(const ChangeSet& changes) const;
  void leave_out(const Attempt& attempt);
  std::vector<Prediction> predictions() const;
  void extend(const ChangeSet& changes, std::vector<Prediction>& list) const;
  bool are_compatible(const ChangeSet& changes, std::size_t with) const;
  Prediction predict(const ChangeSet& changes) const;
  bool is_pointless(const Prediction& prediction) const;
  // kIllegal: not a legal job, by its fields or its layouts.
  Outcome measure(Attempt& attempt);
  Outcome measure_small(Attempt& attempt);
  void report_progress(const Attempt& attempt) const;
  void add_fitting(Attempt attempt);
  std::vector<const Family*> families_by_effect() const;
  Attempt combine_predicted();

  const LoadedJob& loaded_;
  const Plan& plan_;
  FitPurpose purpose_;
  Shortfall shortfall_;
  Effort most_;
  TimeLimit::Clock::time_point end_;
  Attempt baseline_;
  std::vector<Family> families_;
  std::vector<Option> options_;           // changes that lower the need or fit
  std::vector<Attempt> fitting_;          // the fastest first; none contains a faster one
  std::vector<Attempt> measured_;         // all compilations, so that none is repeated
  std::int32_t small_micro_batches_ = 0;  // micro-batches of the small job; 0: no prediction
  Attempt small_baseline_;
  std::vector<std::string> untried_;
  int untried_combinations_ = 0;
  Effort effort_ = 0;
  int compilations_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::future<Nanos> baseline_future_;  // destroyed first: its thread reads the other members
};

}  // namespace hyperrun
