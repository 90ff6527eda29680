#include "runtime/plan/device_counts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "runtime/plan/layer_profile_cache.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kAsked = 2000;  // strategies whose reason is looked up

// A quick test: every prime factor of `devices` divides a size that an axis may split, or is a possible
// prime factor of the number of stages. It rules out nearly all numbers.
bool may_divide(const Job& job, std::int32_t devices) {
  const ModelSpec& m = job.model;
  std::int64_t left = devices;
  const auto take = [&](std::int64_t size) {
    for (std::int64_t common = size; size > 0 && (common = std::gcd(left, size)) > 1;) left /= common;
  };
  for (const std::int64_t size : {job.training.batch, m.sequence, m.hidden, m.heads, m.kv_heads, m.head_dim,
                                  m.ffn, m.vocab, m.experts.count, m.experts.ffn})
    take(size);
  for (std::int32_t stages = 2; stages <= m.layers; ++stages) take(stages);
  return left == 1;
}

}  // namespace

Job with_devices(const Job& base, std::int32_t devices) {
  Job job = base;
  SupernodeSpec& s = job.supernode;
  const auto share = [&](Bytes all) { return Bytes(all.value / base.supernode.devices * devices); };
  if (devices == s.devices) return job;
  s.devices = devices, s.pool = share(s.pool), s.flash = share(s.flash);
  return job;
}

bool divides(const Job& job, const Space& space) {
  bool some = false;
  std::optional<LayerProfileCache> cache;  // made only for numbers that pass may_divide()
  each_strategy(job, space, [&](const Strategy& s) {
    if (!cache) cache.emplace(job);
    some = some || cache->bound_profile(s) != nullptr;
  });
  return some;
}

std::string what_divides_nothing(const Job& base, const Space& space) {
  LayerProfileCache cache(base);
  std::map<std::string, std::int64_t> reasons;
  std::int64_t asked = 0;
  each_strategy(base, space, [&](const Strategy& s) {
    if (asked++ < kAsked) ++reasons[cache.why_not(s)];
  });
  const auto most = std::ranges::max_element(reasons, {}, [](const auto& r) { return r.second; });
  return most == reasons.end() ? "" : most->first;
}

std::vector<std::int32_t> devices_that_divide(const Job& base, const Space& space) {
  std::vector<std::int32_t> list;
  const std::int32_t n = base.supernode.devices, of_machine = machine_of(base.supernode).devices;
  const auto look = [&](std::int32_t from, std::int32_t to, std::int32_t step) {
    for (std::int32_t d = from; d != to; d += step)
      if (may_divide(base, d) && divides(with_devices(base, d), space)) return list.push_back(d);
  };
  look(n - 1, 0, -1);
  look(n + 1, std::min(2 * n, of_machine > 0 ? of_machine : 2 * n) + 1, 1);
  return list;
}

}  // namespace hyperrun
