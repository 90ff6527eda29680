// Of the changes to a job that does not fit, alone and together: those that make it fit, by measuring.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/fit_changes.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// What a job is compiled for.
struct Purpose {
  bool generates = false;

  const char* program() const { return generates ? "decode" : "train"; }
  const char* unit() const { return generates ? " a pass of decode" : " a step"; }
  Plan compiled(const Job& job) const;
  std::vector<Family> changes(const Job& job, const Plan& plan) const;
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
  Nanos time{};        // as simulated
  std::string beyond;  // of one that fits and changes it: see words_of_beyond
};

// Enough to choose from.
inline constexpr std::size_t kOffers = 3;

class FitSearch {
 public:
  FitSearch(const LoadedJob& loaded, const Plan& plan, Purpose purpose, Lack lack);

  // Each change is tried; of a family those behind the mildest that is enough are not. Then up to three
  // together, in the order of what the trials of one promise. Of jobs that take long to compile only as many
  // changes alone as are enough to choose from.
  void run();

  // Of those that fit the fastest kOffers, the fastest first; then the fastest of one change alone, if it is
  // not among them.
  std::vector<Trial> best() const;
  bool anything_helps() const { return !options_.empty(); }
  // One after another, what helps most first, until it fits: for when nothing did in run().
  Trial together();

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

  bool has_time() const;
  void try_each();
  void try_several();
  std::vector<Promise> promises() const;
  void extend(const ChangeSet& changes, std::vector<Promise>& list) const;
  bool go_together(const ChangeSet& changes, std::size_t with) const;
  Promise promise(const ChangeSet& changes) const;
  bool is_pointless(const Promise& promise) const;
  // False: it is no legal job, by its fields or by its layouts.
  bool measure(Trial& trial);
  void add_enough(Trial trial);

  const LoadedJob& loaded_;
  const Plan& plan_;
  Purpose purpose_;
  Lack lack_;
  Trial as_it_is_;
  std::vector<Family> families_;
  std::vector<Option> options_;    // what lowers the need, or is enough
  std::vector<Trial> enough_;      // the fastest first; no faster one is part of another
  std::int64_t instructions_ = 0;  // of all that was compiled, as kPlanning weighs them
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace hyperrun
