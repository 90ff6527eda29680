// Of the changes to a job that does not fit, alone and together: those that make it fit, by measuring.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

#include "runtime/advise/fit_changes.h"
#include "runtime/advise/fit_effort.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// What a job is compiled for.
struct FitPurpose {
  bool generates = false;

  const char* program() const { return generates ? "decode" : "train"; }
  const char* unit() const { return generates ? " a pass of decode" : " a step"; }
  Plan compiled(const Job& job) const;
  // Offloading last, as trying it takes longest. Where planning ahead takes more than `most`, also offloading
  // that does not plan.
  std::vector<Family> changes(const Job& job, const Plan& plan, Effort most) const;
  // A step, or a token of each sequence, if there were room for it.
  Nanos time(const Job& job, const Plan& plan) const;
};

// What is lacking, and how much of it there is: of HBM for each device, else for all together.
struct Lack {
  Tier tier = Tier::kHbm;
  Bytes budget{};

  Bytes needs(const Plan& plan) const { return tier == Tier::kHbm ? plan.peak() : plan.of_all_devices(tier); }
};

bool all_fits(const Plan& plan, const SupernodeSpec& spec);

// The places in FitSearch's list of changes, ascending.
using ChangeSet = std::vector<std::size_t>;

struct Trial {
  ChangeSet changes;
  std::string what;  // "add the preset sp and ..."
  Job job;           // changed
  Bytes needs{};     // of what is lacking
  bool fits = false;
  Nanos time{};        // as simulated; of one that does not fit, where it may become part of another
  std::string beyond;  // of one that fits and changes it: see words_of_beyond
};

// Enough to choose from.
inline constexpr std::size_t kOffers = 3;

// Where a step has many micro-batches and takes long to compile, what a change does is foreseen from a job of
// a few of them: stages have as many at once as they will ever have. Only what should fit is then compiled.
class FitSearch {
 public:
  // `most`: nothing is compiled that would take more in all, as it is reckoned beforehand; the last that is
  // may turn out longer.
  FitSearch(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, Lack lack,
            Effort most = kMostEffort);

  // Each change is tried; of a family those behind the mildest that is enough are not. Then up to three
  // together, in the order of what the trials of one promise.
  void run();

  // Of those that fit the fastest kOffers, the fastest first; then the fastest of one change alone, if it is
  // not among them.
  std::vector<Trial> best() const;
  bool anything_helps() const { return !options_.empty(); }
  // One after another, what helps most first, until it fits: for when nothing did in run(). `what` is
  // empty where nothing could be compiled any more.
  Trial together();

  // Counted; of any job that is like this one.
  Plan compiled(const Job& job);

  // A step of the job as it is, if there were room for it. Where the first is called, it is found on a thread
  // of its own, beside what is compiled before it is asked for.
  void begin_time_as_it_is();
  Nanos time_as_it_is();

  // What might help and was not compiled for want of effort: changes alone, and how many of several together.
  const std::vector<std::string>& untried() const { return untried_; }
  int untried_together() const { return untried_together_; }

  // Of all that was compiled so far.
  Effort effort() const { return effort_; }
  int compilations() const { return compilations_; }

 private:
  struct Option {
    const Change* change;
    std::size_t family;
    Trial alone;
  };
  struct Promise {
    ChangeSet changes;
    Bytes needs{};
    bool fits = false;
    Nanos time{};
  };
  enum class Outcome { kDone, kIllegal, kTooLong };

  bool affords(const Job& job) const;
  Job of_few(Job job) const;
  void prepare_to_foresee();
  void try_each();
  void try_one(const Change& change, std::size_t family);
  void try_several();
  Trial trial_of(const ChangeSet& changes) const;
  void leave_out(const Trial& trial);
  std::vector<Promise> promises() const;
  void extend(const ChangeSet& changes, std::vector<Promise>& list) const;
  bool go_together(const ChangeSet& changes, std::size_t with) const;
  Promise promise(const ChangeSet& changes) const;
  bool is_pointless(const Promise& promise) const;
  // kIllegal: it is no legal job, by its fields or by its layouts.
  Outcome measure(Trial& trial);
  Outcome foresee(Trial& trial);
  void tell_progress(const Trial& trial) const;
  void add_enough(Trial trial);
  std::vector<const Family*> by_what_helps() const;
  Trial together_as_foreseen();

  const LoadedJob& loaded_;
  const Plan& plan_;
  FitPurpose purpose_;
  Lack lack_;
  Effort most_;
  Trial as_it_is_;
  std::vector<Family> families_;
  std::vector<Option> options_;  // what lowers the need, or is enough
  std::vector<Trial> enough_;    // the fastest first; no faster one is part of another
  std::vector<Trial> measured_;  // all that were compiled, so that none is twice
  std::int32_t few_ = 0;         // micro-batches to foresee with; 0: all is compiled as it is
  Trial few_as_it_is_;
  std::vector<std::string> untried_;
  int untried_together_ = 0;
  Effort effort_ = 0;
  int compilations_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::future<Nanos> begun_;  // waited for before what it reads is gone
};

}  // namespace hyperrun
