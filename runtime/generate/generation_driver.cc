#include "runtime/generate/generation_driver.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "runtime/base/median.h"
#include "runtime/rank/protocol.h"
#include "runtime/spec/stats_io.h"

namespace hyperrun {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// ---- Times

void PassTimes::add(double seconds, std::span<const tasks::InvocationDone> results) {
  double device = 0;
  for (const tasks::InvocationDone& r : results) {
    const InvocationStats stats = stats_from_bytes(r.report, "the report of a device");
    device = std::max(device, 1e-9 * static_cast<double>(stats.end - stats.begin));
  }
  whole_.push_back(seconds);
  devices_.push_back(device);
}

double PassTimes::typical(const std::vector<double>& passes) {
  return median({passes.begin() + (passes.size() > 1 ? 1 : 0), passes.end()});
}

void PassTimes::print(const char* name) const {
  if (whole_.empty()) return;
  std::fprintf(stderr, "%s: %zu pass%s, the median of %.3f ms, of it %.3f ms on the devices\n", name,
               whole_.size(), whole_.size() == 1 ? "" : "es", 1e3 * typical(whole_), 1e3 * typical(devices_));
}

// ---- The driver

void GenerationDriver::print_times() const {
  std::fprintf(stderr, "%lld tokens in %.2f s, %.1f a second; the first after %.3f s\n",
               static_cast<long long>(tokens_), last_, static_cast<double>(tokens_) / std::max(last_, 1e-9),
               first_);
  prefill_.print("prefill");
  decode_.print("decode");
}

std::optional<tasks::Invocation> GenerationDriver::next() {
  if (stage_ == Stage::kBegin) {
    stage_ = Stage::kLoad;
    return tasks::Invocation{.program = kLoadProgram};
  }
  if (stage_ == Stage::kLoad) return std::nullopt;
  std::optional<tasks::Invocation> next = generation_.next();
  if (next) pass_begun_ = now();
  return next;
}

void GenerationDriver::done(const tasks::Invocation& invocation,
                            std::span<const tasks::InvocationDone> results) {
  if (!generation_.is_pass(invocation)) {
    stage_ = Stage::kGenerate;
    begun_ = now();
    return;
  }
  (generation_.is_prefill(invocation) ? prefill_ : decode_).add(now() - pass_begun_, results);
  for (const SampledToken& grown : generation_.done(results)) {
    completions_.add(grown);
    ++tokens_;
  }
  last_ = now() - begun_;
  if (first_ == 0 && tokens_ > 0) first_ = last_;
}

}  // namespace hyperrun
