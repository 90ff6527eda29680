#include "runtime/run/chaos.h"

#include <algorithm>
#include <random>
#include <string>

#include "runtime/rank/fault.h"
#include "runtime/rank/protocol.h"

namespace hyperrun {
namespace {

// One of four random faults happens while a checkpoint is saved, one of eight while the devices start.
constexpr std::uint32_t kSavingOf = 4, kStartingOf = 8;

// std::uniform_int_distribution differs between libraries; a seed must mean the same everywhere.
std::int32_t below(std::mt19937_64& dice, std::int64_t bound) {
  return static_cast<std::int32_t>(dice() % static_cast<std::uint64_t>(std::max<std::int64_t>(1, bound)));
}

// Whether the devices start again after it.
bool is_loss(const std::string& kind) {
  return kind == kKillFault || kind == kStopFault || kind == kCutFault;
}

}  // namespace

Chaos::Chaos(const ChaosSpec& spec, std::int32_t devices, std::int32_t steps, bool saves)
    : faults_(spec.certain) {
  std::vector<std::string> kinds = spec.kinds;
  if (kinds.empty())
    for (const std::string_view kind : {kKillFault, kStopFault, kSlowFault, kCutFault})
      kinds.emplace_back(kind);
  std::mt19937_64 dice(spec.seed);
  for (std::int32_t i = 0; i < spec.faults; ++i) {
    FaultSpec fault;
    fault.kind = kinds[static_cast<std::size_t>(below(dice, std::ssize(kinds)))];
    fault.device = below(dice, devices);
    fault.step = 1 + below(dice, steps);
    const bool starting = below(dice, kStartingOf) == 0, saving = below(dice, kSavingOf) == 0;
    if (starting && is_loss(fault.kind)) fault.step = 0;
    fault.saving = fault.kind == kFullDiskFault || (saving && saves && fault.step > 0);
    faults_.push_back(std::move(fault));
  }
  happened_.resize(faults_.size());
}

void Chaos::add_fault(tasks::Invocation& invocation, bool saves,
                      const std::function<bool(std::int32_t)>& runs_on) {
  if (timeline_ != nullptr && timeline_->draws() && invocation.scalars.contains(kLearningRate))
    if (const std::optional<FaultSpec> drawn = timeline_->first_step()) return set_fault(invocation, *drawn);
  for (std::size_t f = 0; f < faults_.size() && !ends_this_start_; ++f) {
    const FaultSpec& fault = faults_[f];
    // A step's invocation has the number of steps before it; that of a save has the number of steps done.
    const std::int64_t step = invocation.step + (saves ? 0 : 1);
    if (happened_[f] || fault.step == 0 || step < fault.step || fault.saving != saves) continue;
    if (!runs_on(fault.device)) continue;
    happened_[f] = true;
    ends_this_start_ = is_loss(fault.kind);
    set_fault(invocation, fault);
    return;
  }
}

std::optional<FaultSpec> Chaos::of_start(std::int32_t devices) {
  ends_this_start_ = false;
  if (timeline_ != nullptr)
    if (std::optional<FaultSpec> drawn = timeline_->start(devices)) return drawn;
  for (std::size_t f = 0; f < faults_.size(); ++f) {
    if (happened_[f] || faults_[f].step > 0) continue;
    happened_[f] = true;
    ends_this_start_ = is_loss(faults_[f].kind);
    return faults_[f];
  }
  return std::nullopt;
}

std::vector<FaultSpec> Chaos::missed() const {
  std::vector<FaultSpec> missed;
  for (std::size_t f = 0; f < faults_.size(); ++f)
    if (!happened_[f]) missed.push_back(faults_[f]);
  return missed;
}

std::int32_t Chaos::gone(std::int64_t step) const {
  std::int32_t gone = 0;
  for (std::size_t f = 0; f < faults_.size(); ++f)
    gone += happened_[f] && faults_[f].for_good && (faults_[f].back == 0 || step < faults_[f].back) ? 1 : 0;
  return gone;
}

}  // namespace hyperrun
