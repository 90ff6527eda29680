// The schema proto/faults.proto as C++, like job_fields.h.
#pragma once

#include <vector>

#include "runtime/faults/fault_model.h"
#include "runtime/faults/policy.h"
#include "runtime/spec/job_fields.h"

namespace hyperrun {

inline std::vector<Choice> fault_policy_choices() {
  std::vector<Choice> choices;
  for (const FaultPolicy& policy : fault_policies()) choices.push_back({policy.name, policy.meaning});
  return choices;
}

inline constexpr double kTenYears = 3650 * 86400.0, kMillisecond = 1e-3;
inline constexpr RealRange kMtbf{.min = kMillisecond, .max = 3.6e11}, kRepair{.max = kTenYears},
    kDelay{.max = 30 * 86400.0}, kPart{.max = 1};
inline constexpr IntRange kFaultDevices{.min = 1, .max = 1 << 20};

template <class Visitor>
void fields(Visitor& v, FaultUnit& u) {
  v.span("mtbf", u.mtbf, Need::kRequired, kMtbf);
  v.integer("devices", u.devices, Need::kOptional, kFaultDevices);
  v.span("repair", u.repair, Need::kOptional, kRepair);
  v.real("lasting", u.lasting, Need::kOptional, kPart);
}

template <class Visitor>
void fields(Visitor& v, SoftwareFault& f) {
  v.span("mtbf", f.mtbf, Need::kRequired, kMtbf);
}

template <class Visitor>
void fields(Visitor& v, FaultDelays& d) {
  v.span("detection", d.detection, Need::kOptional, kDelay);
  v.span("reaction", d.reaction, Need::kOptional, kDelay);
  v.span("start", d.start, Need::kOptional, kDelay);
  v.span("compile", d.compile, Need::kOptional, kDelay);
  v.span("join", d.join, Need::kOptional, kDelay);
}

template <class Visitor>
void fields(Visitor& v, FaultStorage& s) {
  v.rate("bandwidth", s.bandwidth, QuantityKind::kByteRate, Need::kRequired);
  v.rate("device_bandwidth", s.device_bandwidth, QuantityKind::kByteRate);
}

template <class Visitor>
void fields(Visitor& v, FaultSaves& s) {
  v.flag("beside", s.beside);
  v.rate("snapshot", s.snapshot, QuantityKind::kByteRate);
  v.real("share", s.share, Need::kOptional, kPart);
  v.span("write_time", s.write_time, Need::kOptional, kDelay);
  v.span("read_time", s.read_time, Need::kOptional, kDelay);
}

template <class Visitor>
void fields(Visitor& v, FaultCopies& c) {
  v.rate("bandwidth", c.bandwidth, QuantityKind::kByteRate);
  v.real("share", c.share, Need::kOptional, kPart);
  v.span("disk_every", c.disk_every, Need::kOptional, {.min = kMillisecond, .max = kTenYears});
}

template <class Visitor>
void fields(Visitor& v, FaultModel& s) {
  v.text("name", s.name, Need::kOptional);
  v.text("about", s.about, Need::kOptional);
  v.optional("device", s.device);
  v.optional("host", s.host);
  v.optional("switch", s.switches);
  v.optional("software", s.software);
  v.optional("delays", s.delays);
  v.block("storage", s.storage, Need::kRequired);
  v.optional("save", s.save);
  v.optional("copies", s.copies);
  v.integer("spares", s.spares, Need::kOptional, {.max = 1 << 20});
  v.real("spare_share", s.spare_share, Need::kOptional, kPart);
  v.span("horizon", s.horizon, Need::kOptional, {.min = kMillisecond, .max = kTenYears});
  v.integer("samples", s.samples, Need::kOptional, {.min = 2, .max = 1000});
  v.integer("seed", s.seed);
  v.integers("scales", s.scales, kFaultDevices);
  v.choices("policies", s.policies, fault_policy_choices());
}

}  // namespace hyperrun
