#include "runtime/plan/proof.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "runtime/base/divisors.h"
#include "runtime/base/error.h"
#include "runtime/plan/layer_profile_cache.h"

namespace hyperrun {
namespace {

// Enough for pipelines of several stages and for layers of both kinds.
constexpr std::int32_t kLayers = 4;
// Smallest executed model. A smaller one proves nothing, and axes must divide it.
constexpr std::int32_t kLeastHidden = 64, kLeastSequence = 64, kLeastVocab = 257;
constexpr std::size_t kShrinks = 4;  // sizes that are tried
constexpr double kApart = 0.02;      // least distance of two plans, relative

// Bytes of weights, gradients and optimizer state of the model, each counted once.
double state(const Job& job) {
  LayerProfileCache cache(job);
  const StepProfile* const profile = cache.profile({});  // on one device
  if (profile == nullptr) throw Error(Code::kBadLayout, cache.why_not({})).at("--prove");
  const std::int32_t dense = profile->kinds.size() > 1 ? job.model.experts.dense_layers : job.model.layers;
  std::int64_t bytes = profile->first.state.all() + profile->last.state.all();
  for (std::size_t k = 0; k < profile->kinds.size(); ++k)
    bytes += profile->kinds[k].state.all() * (k == 0 ? dense : job.model.layers - dense);
  return static_cast<double>(bytes);
}

Bytes times(Bytes bytes, double factor) {
  return Bytes(std::llround(static_cast<double>(bytes.value) * factor));
}

void take_layers(ModelSpec& model) {
  const std::int32_t layers = std::min(model.layers, kLayers);
  ExpertsSpec& experts = model.experts;
  if (experts.dense_layers > 0)
    experts.dense_layers = std::min(std::max(experts.dense_layers * layers / model.layers, 1), layers - 1);
  model.layers = layers;
}

// Sequences of a step in the world. More than one a device only make the step longer.
std::int32_t sequences(const Job& job, std::int32_t devices) {
  const double share = static_cast<double>(job.training.batch) * devices / job.supernode.devices;
  const auto batch = static_cast<std::int32_t>(std::min(std::round(share), 1e9));
  return std::clamp(batch, 1, devices);
}

std::int32_t common(std::initializer_list<std::int32_t> sizes) {
  std::int32_t divisor = 0;
  for (const std::int32_t size : sizes) divisor = std::gcd(divisor, size);
  return divisor;
}

// Divisors of `of` for which `leaves` is true, the largest first; 1 always counts.
template <class Leaves>
std::vector<std::int32_t> divisors_that(std::int32_t of, Leaves leaves) {
  std::vector<std::int32_t> list;
  for (const std::int64_t d : divisors(std::int64_t{of}))
    if (d == 1 || leaves(static_cast<std::int32_t>(d))) list.push_back(static_cast<std::int32_t>(d));
  std::ranges::reverse(list);
  return list;
}

}  // namespace

Job proof_world(const Job& job, std::int32_t devices) {
  if (job.supernode.devices == 1)
    throw Error(Code::kUsage, "a job of one device has one place for everything: no plans to compare")
        .at(fmt::format("--prove {}", devices))
        .legal("jobs of 2 devices or more")
        .fix("plan without --prove, or give the job devices");
  if (devices > job.supernode.devices)
    throw Error(Code::kUsage, fmt::format("the job has {} devices", job.supernode.devices))
        .at(fmt::format("--prove {}", devices))
        .legal(fmt::format("2 to {}", job.supernode.devices))
        .fix("prove on fewer ranks");
  const Machine machine = machine_of(job.supernode);
  if (machine.feeding().takes_time() || machine.in_order())
    throw Error(Code::kBadValue, fmt::format("the paced clock has no feeder, as {} has", machine.name))
        .at("supernode.profile")
        .legal("a profile without a feeder")
        .fix("choose another profile, leave the software out, or plan without --prove");
  Job world = job;
  world.supernode.devices = devices;
  take_layers(world.model);
  world.training.batch = sequences(job, devices);
  world.training.warmup_steps = 0;  // a few steps must change the weights
  world.run = {};
  world.run.seed = job.run.seed;
  const double share = state(world) / state(job);  // share of the memory of all devices
  world.supernode.hbm = times(job.supernode.hbm, share * job.supernode.devices / devices);
  world.supernode.pool = times(job.supernode.pool, share);
  world.supernode.flash = times(job.supernode.flash, static_cast<double>(devices) / job.supernode.devices);
  return world;
}

std::vector<ShrinkSpec> proof_shrinks(const Job& world) {
  const ModelSpec& m = world.model;
  const LatentSpec& l = m.latent;
  const std::vector<std::int32_t> widths = divisors_that(
      common({m.hidden, m.head_dim, m.ffn, m.experts.ffn, l.q_rank, l.kv_rank, l.nope_dim, l.rope_dim,
              l.value_dim}),
      [&](std::int32_t d) {
        return m.hidden / d >= kLeastHidden && m.head_dim / d % 2 == 0 && l.rope_dim / d % 2 == 0;
      });
  const std::vector<std::int32_t> sequences =
      divisors_that(common({m.sequence, m.positions, m.experts.capacity.group}), [&](std::int32_t d) {
        return m.sequence / d >= std::max(kLeastSequence, 4 * world.supernode.devices);
      });
  const std::vector<std::int32_t> vocabs =
      divisors_that(m.vocab, [&](std::int32_t d) { return m.vocab / d >= kLeastVocab; });
  std::vector<ShrinkSpec> list;
  for (std::size_t i = 0; i < kShrinks; ++i) {
    const auto at = [&](const std::vector<std::int32_t>& of) { return of[std::min(i, of.size() - 1)]; };
    list.push_back({.width = at(widths), .sequence = at(sequences), .vocab = at(vocabs)});
  }
  list.push_back({});
  return list;
}

std::vector<SimulatedCandidate> spread_out(const std::vector<SimulatedCandidate>& leaders,
                                           std::size_t count) {
  std::vector<SimulatedCandidate> from, chosen;
  for (const SimulatedCandidate& l : leaders)
    if (l.simulated > 0) from.push_back(l);
  std::ranges::stable_sort(from, {}, &SimulatedCandidate::simulated);
  if (from.empty() || count == 0) return {};
  chosen.push_back(from.front());
  const double best = from.front().simulated, worst = from.back().simulated;
  for (std::size_t i = 1; i < count; ++i) {
    const double aim = best * std::pow(worst / best, static_cast<double>(i) / static_cast<double>(count - 1));
    const SimulatedCandidate* nearest = nullptr;
    for (const SimulatedCandidate& l : from) {
      if (l.simulated < (1 + kApart) * chosen.back().simulated) continue;
      if (nearest == nullptr || std::abs(l.simulated - aim) < std::abs(nearest->simulated - aim))
        nearest = &l;
    }
    if (nearest != nullptr) chosen.push_back(*nearest);
  }
  return chosen;
}

}  // namespace hyperrun
