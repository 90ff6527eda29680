#include "launcher/fit.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/presets.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/job_check.h"

namespace hyperrun {
namespace {

struct Change {
  std::string what;  // "add the preset sp"
  std::function<void(Job&)> apply;
};

// Of one kind, the mildest first: only one of them makes sense.
using Family = std::vector<Change>;

// A program has the instructions of each micro-batch: longer ones would take seconds to try.
constexpr std::int64_t kLongest = 100'000;

Family micro_batches(const TrainingSpec& now, const Plan& plan) {
  std::int64_t length = 0;
  for (const Role& role : plan.roles)
    length += static_cast<std::int64_t>(role.program("train").instrs.size());
  Family family;
  for (std::int32_t n = now.micro_batches + 1; n <= now.batch && length * n / now.micro_batches <= kLongest;
       ++n)
    if (now.batch % n == 0)
      family.push_back({"set training.micro_batches to " + std::to_string(n),
                        [=](Job& j) { j.training.micro_batches = n; }});
  return family;
}

Family recomputation() {
  Family family;
  for (const char* policy : {"selective", "full"})
    family.push_back({"add training.recompute { policy: \"" + std::string(policy) + "\" }", [=](Job& j) {
                        j.training.recompute.push_back({policy, 0, j.model.layers - 1});
                      }});
  return family;
}

// Weights and activations over more devices: half as many parts of the batch, twice as many of the tensors.
Family wider_tensors(const Job& job) {
  Family family;
  const auto find = [](Job& j, std::string_view axis) {
    return std::ranges::find(j.parallel.mesh, axis, &MeshAxis::name);
  };
  for (Job next = job;;) {
    const auto dp = find(next, "dp"), tp = find(next, "tp"), end = next.parallel.mesh.end();
    if (dp == end || tp == end || dp->size % 2 != 0) return family;
    dp->size /= 2, tp->size *= 2;
    family.push_back({"set the mesh to dp=" + std::to_string(dp->size) + " tp=" + std::to_string(tp->size),
                      [mesh = next.parallel.mesh](Job& j) { j.parallel.mesh = mesh; }});
  }
}

std::vector<Family> families(const Job& job, const Plan& plan) {
  std::vector<Family> all;
  for (const Preset& preset : kPresets) {
    const std::string name(preset.name);
    if (std::ranges::count(job.parallel.presets, name) == 0)
      all.push_back({{"add the preset " + name, [=](Job& j) { j.parallel.presets.push_back(name); }}});
  }
  if (job.memory.policy == "none" && job.supernode.pool.value > 0)
    all.push_back(
        {{"set memory.policy to \"hyperoffload\"", [](Job& j) { j.memory.policy = "hyperoffload"; }}});
  all.push_back(wider_tensors(job));
  all.push_back(micro_batches(job.training, plan));
  all.push_back(recomputation());
  return all;
}

struct Trial {
  std::string what;
  Job job;  // changed
  Bytes peak{};
  Nanos step{};  // as simulated; of those that fit
};

// What a step would take if there were room for it.
Nanos step_of(const Job& job, const Plan& plan) {
  const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
  return simulate(plan, "train", job.supernode, topology).makespan;
}

class Trials {
 public:
  explicit Trials(const LoadedJob& loaded) : source_(loaded.source), budget_(loaded.job.supernode.hbm) {}

  bool fits(const Trial& trial) const { return trial.peak <= budget_; }

  // The mildest that fits, else the one with the lowest peak; none when no other job lowers it.
  std::optional<Trial> best(const Trial& base, const Family& family) const {
    std::optional<Trial> lowest;
    for (const Change& change : family) {
      Trial trial{base.what + (base.what.empty() ? "" : " and ") + change.what, base.job};
      change.apply(trial.job);
      if (!measure(trial) || trial.peak >= (lowest ? lowest->peak : base.peak)) continue;
      lowest = std::move(trial);
      if (fits(*lowest)) break;
    }
    return lowest;
  }

 private:
  // False: it is no legal job, by its fields or by its layouts.
  bool measure(Trial& trial) const try {
    if (!check_job(trial.job, source_).empty()) return false;
    if (std::chrono::steady_clock::now() - began_ > kPatience)
      std::fprintf(stderr, "does not fit; trying what would: %s\n", trial.what.c_str());
    const Plan plan = compile(trial.job).plan;
    trial.peak = plan.peak();
    if (fits(trial)) trial.step = step_of(trial.job, plan);
    return true;
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    return false;
  }

  static constexpr std::chrono::seconds kPatience{2};  // of people, before they want to know what goes on

  const JobSource& source_;
  Bytes budget_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Enough to choose from.
constexpr std::size_t kOffers = 3;

std::string needs(Bytes peak) {
  return "needs " + std::to_string(peak.value) + " bytes (" + to_string(peak) + ")";
}
std::string offer(const Trial& t) {
  return t.what + ": " + needs(t.peak) + ", " + to_string(t.step) + " a step as simulated";
}

std::string remedy(const LoadedJob& loaded, const Plan& plan) {
  const Bytes peak = plan.peak();
  const std::string raise = "raise supernode.hbm to \"" + std::to_string(peak.value) +
                            " B\": " + to_string(step_of(loaded.job, plan)) + " a step";
  const Trials trials(loaded);
  const Trial as_it_is{"", loaded.job, peak, {}};

  std::vector<Trial> enough;
  std::vector<std::pair<Bytes, Family>> helpful;
  for (Family& family : families(loaded.job, plan)) {
    std::optional<Trial> trial = trials.best(as_it_is, family);
    if (!trial) continue;
    helpful.emplace_back(trial->peak, std::move(family));
    if (trials.fits(*trial)) enough.push_back(std::move(*trial));
  }
  std::ranges::stable_sort(enough, {}, &Trial::step);
  if (!enough.empty()) {
    std::string all;
    for (std::size_t i = 0; i < enough.size() && i < kOffers; ++i) all += offer(enough[i]) + "; or ";
    return all + raise;
  }
  if (helpful.empty())
    return raise +
           ", use more devices, or a smaller model, batch or sequence: no preset of this mesh, more " +
           "micro-batches or recomputation would help";

  // One after another, what helps most first.
  std::ranges::stable_sort(helpful, {}, &std::pair<Bytes, Family>::first);
  Trial together = as_it_is;
  for (const auto& [alone, family] : helpful) {
    if (std::optional<Trial> trial = trials.best(together, family)) together = std::move(*trial);
    if (trials.fits(together)) return offer(together) + ", and none of these alone is enough; or " + raise;
  }
  return raise + " or use more devices; the least that was tried " + needs(together.peak) + ": " +
         together.what;
}

}  // namespace

void require_fit(const LoadedJob& loaded, const Plan& plan) try {
  check_fits(plan, loaded.job.supernode);
} catch (Error& e) {
  if (plan.peak() <= loaded.job.supernode.hbm) throw;
  e.fix(remedy(loaded, plan));
  if (!flags().dump_dir.empty()) compile(loaded.job);  // what was tried has overwritten the job's own
  throw;
}

}  // namespace hyperrun
