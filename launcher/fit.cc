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

// Fewer sequences at once, shorter ones; each half of what was.
Family fewer_slots(const Job& job) {
  Family family;
  const GenerationShape shape = generation_shape(job);
  for (std::int64_t n = shape.slots / 2; n >= shape.groups && n > 0; n /= 2)
    family.push_back({"set inference.slots to " + std::to_string(n), [=](Job& j) {
                        j.inference.slots = static_cast<std::int32_t>(n), j.inference.pages = 0;
                      }});
  return family;
}

Family shorter_context(const Job& job) {
  Family family;
  for (std::int64_t n = generation_shape(job).context / 2;
       n > job.run.generate.tokens && n >= job.inference.page; n /= 2)
    family.push_back({"set inference.context to " + std::to_string(n), [=](Job& j) {
                        j.inference.context = static_cast<std::int32_t>(n), j.inference.pages = 0;
                      }});
  return family;
}

// The cache, then the weights, then both.
std::vector<Family> offloaded(const Job& job) {
  std::vector<Family> all;
  if (job.memory.policy != "none" || job.supernode.pool.value == 0) return all;
  const auto add = [&](const std::string& text, const std::vector<std::string>& tensors) {
    all.push_back({{"set memory to { policy: \"hyperoffload\"" + text + " }", [=](Job& j) {
                      j.memory = {"hyperoffload", "pool", tensors};
                    }}});
  };
  add(" tensors: \"cache\"", {"cache"});
  add(" tensors: \"weights\"", {"weights"});
  add("", {});
  return all;
}

std::vector<Family> families_of_generation(const Job& job) {
  std::vector<Family> all = offloaded(job);
  all.push_back(wider_tensors(job));
  all.push_back(fewer_slots(job));
  all.push_back(shorter_context(job));
  return all;
}

// What a job is compiled for.
struct Purpose {
  bool generates = false;

  Plan compiled(const Job& job) const {
    return generates ? compile_generation(job).plan : hyperrun::compile(job).plan;
  }
  std::vector<Family> families(const Job& job, const Plan& plan) const {
    return generates ? families_of_generation(job) : hyperrun::families(job, plan);
  }
  // A step, or a token of each sequence, if there were room for it.
  Nanos time(const Job& job, const Plan& plan) const {
    const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
    return simulate(plan, generates ? "decode" : "train", job.supernode, topology).makespan;
  }
  const char* unit() const { return generates ? " a pass of decode" : " a step"; }
  const char* nothing_helps() const {
    return generates
               ? ", use more devices, or a smaller model: nothing in the pool, fewer slots or a shorter "
                 "context would help"
               : ", use more devices, or a smaller model, batch or sequence: no preset of this mesh, more "
                 "micro-batches or recomputation would help";
  }
};

// What is lacking, and how much of it there is: of HBM for each device, else for all together.
struct Lack {
  Tier tier = Tier::kHbm;

  Bytes needs(const Plan& plan) const { return tier == Tier::kHbm ? plan.peak() : plan.of_all_devices(tier); }
  std::string field() const { return "supernode." + std::string(name(tier)); }
};

bool all_fits(const Plan& plan, const SupernodeSpec& spec) {
  return plan.peak() <= spec.hbm && plan.of_all_devices(Tier::kPool) <= spec.pool &&
         plan.of_all_devices(Tier::kFlash) <= spec.flash;
}

struct Trial {
  std::string what;
  Job job;        // changed
  Bytes needs{};  // of what is lacking
  bool fits = false;
  Nanos time{};  // as simulated; of those that fit
};

class Trials {
 public:
  Trials(const LoadedJob& loaded, Purpose purpose, Lack lack)
      : source_(loaded.source), purpose_(purpose), lack_(lack) {}

  // The mildest that fits, else the one that needs least; none when no other job lowers it.
  std::optional<Trial> best(const Trial& base, const Family& family) const {
    std::optional<Trial> lowest;
    for (const Change& change : family) {
      Trial trial{base.what + (base.what.empty() ? "" : " and ") + change.what, base.job};
      change.apply(trial.job);
      if (!measure(trial) || trial.needs >= (lowest ? lowest->needs : base.needs)) continue;
      lowest = std::move(trial);
      if (lowest->fits) break;
    }
    return lowest;
  }

  // Of the tier to the byte: what is told fits if it is done.
  std::string raised(Job job, Tier tier, Bytes to) const {
    (tier == Tier::kHbm    ? job.supernode.hbm
     : tier == Tier::kPool ? job.supernode.pool
                           : job.supernode.flash) = to;
    const Plan plan = purpose_.compiled(job);
    HR_CHECK(all_fits(plan, job.supernode));
    return "raise supernode." + std::string(name(tier)) + " to \"" + std::to_string(to.value) +
           " B\": " + to_string(purpose_.time(job, plan)) + purpose_.unit();
  }

 private:
  // False: it is no legal job, by its fields or by its layouts.
  bool measure(Trial& trial) const try {
    if (!check_job(trial.job, source_).empty()) return false;
    if (std::chrono::steady_clock::now() - began_ > kPatience)
      std::fprintf(stderr, "does not fit; trying what would: %s\n", trial.what.c_str());
    const Plan plan = purpose_.compiled(trial.job);
    trial.fits = all_fits(plan, trial.job.supernode);
    trial.needs = lack_.needs(plan);
    if (trial.fits) trial.time = purpose_.time(trial.job, plan);
    return true;
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    return false;
  }

  static constexpr std::chrono::seconds kPatience{2};  // of people, before they want to know what goes on

  const JobSource& source_;
  Purpose purpose_;
  Lack lack_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Enough to choose from.
constexpr std::size_t kOffers = 3;

class Remedy {
 public:
  Remedy(const LoadedJob& loaded, const Plan& plan, Purpose purpose, Lack lack)
      : loaded_(loaded), plan_(plan), purpose_(purpose), lack_(lack), trials_(loaded, purpose, lack) {}

  std::string text() const {
    const std::string raise = raises();
    const Trial as_it_is{"", loaded_.job, lack_.needs(plan_)};
    std::vector<Trial> enough;
    std::vector<std::pair<Bytes, Family>> helpful;
    for (Family& family : purpose_.families(loaded_.job, plan_)) {
      std::optional<Trial> trial = trials_.best(as_it_is, family);
      if (!trial) continue;
      helpful.emplace_back(trial->needs, std::move(family));
      if (trial->fits) enough.push_back(std::move(*trial));
    }
    std::ranges::stable_sort(enough, {}, &Trial::time);
    if (!enough.empty()) {
      std::string all;
      for (std::size_t i = 0; i < enough.size() && i < kOffers; ++i) all += offer(enough[i]) + "; or ";
      return all + raise;
    }
    if (helpful.empty()) return raise + purpose_.nothing_helps();

    // One after another, what helps most first.
    std::ranges::stable_sort(helpful, {}, &std::pair<Bytes, Family>::first);
    Trial together = as_it_is;
    for (const auto& [alone, family] : helpful) {
      if (std::optional<Trial> trial = trials_.best(together, family)) together = std::move(*trial);
      if (together.fits) return offer(together) + ", and none of these alone is enough; or " + raise;
    }
    return raise + " or use more devices; the least that was tried " + needs(together.needs) + ": " +
           together.what;
  }

 private:
  // Where what lies beyond HBM has no room, more HBM lets less lie there.
  std::string raises() const {
    std::string text = trials_.raised(loaded_.job, lack_.tier, lack_.needs(plan_));
    if (lack_.tier == Tier::kHbm) return text;
    Job none = loaded_.job;
    none.supernode.hbm = Bytes(1);  // is planned for the least that is enough with the pool that there is
    return text + "; or " + trials_.raised(loaded_.job, Tier::kHbm, purpose_.compiled(none).peak());
  }

  std::string needs(Bytes bytes) const {
    return "needs " + std::to_string(bytes.value) + " bytes (" + to_string(bytes) + ")" +
           (lack_.tier == Tier::kHbm ? "" : " of the " + std::string(name(lack_.tier)));
  }
  std::string offer(const Trial& t) const {
    return t.what + ": " + needs(t.needs) + ", " + to_string(t.time) + purpose_.unit() + " as simulated";
  }

  const LoadedJob& loaded_;
  const Plan& plan_;
  Purpose purpose_;
  Lack lack_;
  Trials trials_;
};

Lack lack_of(const Plan& plan, const SupernodeSpec& spec) {
  if (plan.peak() > spec.hbm) return {Tier::kHbm};
  return {plan.of_all_devices(Tier::kPool) > spec.pool ? Tier::kPool : Tier::kFlash};
}

void require_fit_of(const LoadedJob& loaded, const Plan& plan, Purpose purpose) try {
  check_fits(plan, loaded.job.supernode);
} catch (Error& e) {
  e.fix(Remedy(loaded, plan, purpose, lack_of(plan, loaded.job.supernode)).text());
  if (!flags().dump_dir.empty())
    purpose.compiled(loaded.job);  // what was tried has overwritten the job's own
  throw;
}

}  // namespace

void require_fit(const LoadedJob& loaded, const Plan& plan) { require_fit_of(loaded, plan, {}); }

void require_generation_fit(const LoadedJob& loaded, const Plan& plan) {
  require_fit_of(loaded, plan, {.generates = true});
}

}  // namespace hyperrun
