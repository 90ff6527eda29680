#include "runtime/advise/fit_changes.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/compile/compile.h"
#include "runtime/ir/presets.h"

namespace hyperrun {
namespace {

// A program contains the instructions of every micro-batch. Longer ones take seconds to try.
constexpr std::int64_t kLongest = 100'000;

Family micro_batches(const TrainingSpec& now, const Plan& plan) {
  std::int64_t length = 0;
  for (const Role& role : plan.roles)
    length += static_cast<std::int64_t>(role.program("train").instrs.size());
  Family family{"micro-batches", {}};
  for (std::int32_t n = now.micro_batches + 1; n <= now.batch && length * n / now.micro_batches <= kLongest;
       ++n)
    if (now.batch % n == 0)
      family.changes.push_back({fmt::format("set training.micro_batches to {}", n),
                                [=](Job& j) { j.training.micro_batches = n; }});
  return family;
}

Family passes_one_by_one() {
  return {"pairs", {{"leave parallel.paired_passes out", [](Job& j) { j.parallel.paired_passes = false; }}}};
}

// Empty if all layers are recomputed fully already. The last of several blocks for a layer holds.
Family recomputation(const Job& job) {
  Family family{"recomputation", {}};
  const std::vector<RecomputeSpec>& now = job.training.recompute;
  if (!now.empty() && now.back() == RecomputeSpec{"full", 0, job.model.layers - 1}) return family;
  for (const char* policy : {"selective", "full"})
    family.changes.push_back(
        {"add training.recompute { policy: \"" + std::string(policy) + "\" }", [=](Job& j) {
           j.training.recompute.push_back({policy, 0, j.model.layers - 1});
         }});
  return family;
}

// Tensors over more devices: half the data axis, twice the tensor axis.
Family wider_tensors(const Job& job) {
  Family family{"mesh", {}};
  const auto find = [](Job& j, std::string_view axis) {
    return std::ranges::find(j.parallel.mesh, axis, &MeshAxis::name);
  };
  for (Job next = job;;) {
    const auto dp = find(next, "dp"), tp = find(next, "tp"), end = next.parallel.mesh.end();
    if (dp == end || tp == end || dp->size % 2 != 0) return family;
    dp->size /= 2, tp->size *= 2;
    family.changes.push_back({fmt::format("set the mesh to dp={} tp={}", dp->size, tp->size),
                              [mesh = next.parallel.mesh](Job& j) { j.parallel.mesh = mesh; }});
  }
}

// zero1 to zero3 contain each other's rules, so a lower one adds nothing.
bool has_rules_of(const Job& job, const std::string& name) {
  const bool is_zero = name.starts_with("zero");
  return std::ranges::any_of(job.parallel.presets, [&](const std::string& known) {
    return known == name || (is_zero && known.starts_with("zero") && known > name);
  });
}

std::vector<Family> more_presets(const Job& job) {
  std::vector<Family> all;
  for (const Preset& preset : kPresets) {
    const std::string name(preset.name);
    if (!has_rules_of(job, name))
      all.push_back({name.starts_with("zero") ? "zero" : name,
                     {{"add the preset " + name, [=](Job& j) { j.parallel.presets.push_back(name); }}}});
  }
  return all;
}

// Fewer slots or a shorter context, each half of the last.
Family fewer_slots(const Job& job) {
  Family family{"slots", {}};
  const GenerationShape shape = generation_shape(job);
  for (std::int64_t n = shape.slots / 2; n >= shape.groups && n > 0; n /= 2)
    family.changes.push_back({fmt::format("set inference.slots to {}", n), [=](Job& j) {
                                j.inference.slots = static_cast<std::int32_t>(n), j.inference.pages = 0;
                                j.inference.prompts = 0;
                              }});
  return family;
}

Family shorter_context(const Job& job) {
  Family family{"context", {}};
  for (std::int64_t n = generation_shape(job).context / 2;
       n > job.run.generate.tokens && n >= job.inference.page; n /= 2)
    family.changes.push_back({fmt::format("set inference.context to {}", n), [=](Job& j) {
                                j.inference.context = static_cast<std::int32_t>(n), j.inference.pages = 0;
                              }});
  return family;
}

}  // namespace

std::vector<Family> changes_of_training(const Job& job, const Plan& plan) {
  std::vector<Family> all = more_presets(job);
  all.push_back(wider_tensors(job));
  if (job.parallel.paired_passes) all.push_back(passes_one_by_one());
  all.push_back(micro_batches(job.training, plan));
  all.push_back(recomputation(job));
  return all;
}

std::vector<Family> changes_of_generation(const Job& job) {
  std::vector<Family> all{wider_tensors(job)};
  all.push_back(fewer_slots(job));
  all.push_back(shorter_context(job));
  return all;
}

// Excludes what the job does already. A part is a category; "" is everything.
std::vector<Family> offloading(const Job& job, const std::string& policy, bool generates) {
  constexpr std::string_view kParts[] = {"cache", "weights", ""};
  const std::span<const std::string_view> parts(kParts);
  std::vector<Family> all;
  const SupernodeSpec& spec = job.supernode;
  for (const auto& [tier, budget] : {std::pair{"pool", spec.pool}, {"flash", spec.flash}})
    for (const std::string_view part : generates ? parts : parts.last(1)) {
      MemorySpec memory{policy, tier, {}};
      if (!part.empty()) memory.tensors = {std::string(part)};
      if (budget.value == 0 || memory == job.memory) continue;
      std::string what = "set memory to { policy: \"" + policy + "\"";
      if (memory.tier != MemorySpec{}.tier) what += " tier: \"" + memory.tier + "\"";
      if (!part.empty()) what += " tensors: \"" + std::string(part) + "\"";
      all.push_back({"memory", {{what + " }", [=](Job& j) { j.memory = memory; }, true}}});
    }
  return all;
}

}  // namespace hyperrun
