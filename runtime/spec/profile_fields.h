// The schema proto/supernode.proto as C++, like job_fields.h. Reader and writer of profiles visit it; their
// visitors also have figure().
#pragma once

#include "runtime/ir/machine.h"
#include "runtime/spec/job_fields.h"

namespace hyperrun {

inline constexpr Choice kEvidences[] = {
    {"measured", "somebody has measured it"},
    {"data sheet", "the maker says so"},
    {"placeholder", "not public: a guess that stands until somebody knows"},
};

// The ranges of figures. They are wider than any machine, and narrow enough that computed times do not
// overflow.
inline constexpr RealRange kRate{.min = 1e3, .max = 1e21}, kLatency{.max = 1e9},
    kShare{.min = 1e-6, .max = 1}, kFactor{.min = 1e-6, .max = 1e6}, kSize{.max = 1e15},
    kCount{.min = 1, .max = 1 << 20, .whole = true}, kYesOrNo{.max = 1, .whole = true};

template <class Visitor>
void fields(Visitor& v, Efficiency& e) {
  v.figure("ceiling", e.ceiling, QuantityKind::kNumber, Need::kRequired, kShare);
  v.figure("half", e.half, QuantityKind::kNumber, Need::kOptional, kSize);
}

template <class Visitor>
void fields(Visitor& v, OwnEfficiency& e) {
  v.figure("ceiling", e.ceiling, QuantityKind::kNumber, Need::kRequired, kShare);
  v.figure("half", e.half, QuantityKind::kNumber, Need::kOptional, kSize);
}

template <class Visitor>
void fields(Visitor& v, Tiles& t) {
  v.figure("cores", t.cores, QuantityKind::kNumber, Need::kRequired, kCount);
  v.figure("rows", t.rows, QuantityKind::kNumber, Need::kRequired, kCount);
  v.figure("columns", t.columns, QuantityKind::kNumber, Need::kRequired, kCount);
  v.figure("halvings", t.halvings, QuantityKind::kNumber, Need::kOptional, {.max = 8, .whole = true});
  v.figure("operands", t.operands, QuantityKind::kNumber, Need::kOptional, {.max = 1e6});
  v.figure("parts", t.parts, QuantityKind::kNumber, Need::kOptional, {.min = 1, .max = 1024, .whole = true});
}

template <class Visitor>
void fields(Visitor& v, Scores& s) {
  v.figure("forward", s.forward, QuantityKind::kNumber, Need::kRequired, kFactor);
  v.figure("backward", s.backward, QuantityKind::kNumber, Need::kRequired, kFactor);
  v.figure("multiple", s.multiple, QuantityKind::kNumber, Need::kOptional, kCount);
  v.figure("forward_apart", s.forward_apart, QuantityKind::kNumber, Need::kOptional, kFactor);
  v.figure("backward_apart", s.backward_apart, QuantityKind::kNumber, Need::kOptional, kFactor);
  v.figure("kernels", s.kernels, QuantityKind::kNumber, Need::kOptional, kCount);
  v.figure("kernels_apart", s.kernels_apart, QuantityKind::kNumber, Need::kOptional, kCount);
}

template <class Visitor>
void fields(Visitor& v, Feeder& f) {
  v.figure("forward", f.forward, QuantityKind::kTime, Need::kRequired, kLatency);
  v.figure("backward", f.backward, QuantityKind::kTime, Need::kRequired, kLatency);
  v.figure("member", f.member, QuantityKind::kTime, Need::kOptional, kLatency);
  v.figure("micro_batch", f.micro_batch, QuantityKind::kTime, Need::kOptional, kLatency);
  v.flag("in_order", f.in_order);
}

template <class Visitor>
void fields(Visitor& v, Storage& s) {
  v.figure("capacity", s.capacity, QuantityKind::kBytes, Need::kRequired, {.min = 1, .max = 0x1p52});
  v.figure("bandwidth", s.bandwidth, QuantityKind::kByteRate, Need::kRequired, kRate);
  v.figure("latency", s.latency, QuantityKind::kTime, Need::kRequired, kLatency);
  v.figure("shared", s.shared, QuantityKind::kByteRate, Need::kOptional, kRate);
  v.figure("sharers", s.sharers, QuantityKind::kNumber, Need::kOptional, kCount);
  v.block("efficiency", s.efficiency, Need::kOptional);
}

// The block `device` of a profile; its fields are members of Machine itself.
struct DeviceOfProfile {
  Machine& m;
};

template <class Visitor>
void fields(Visitor& v, DeviceOfProfile& d) {
  Machine& m = d.m;
  v.figure("cube_float32", m.cube.f32, QuantityKind::kFlopRate, Need::kRequired, kRate);
  v.figure("cube_bfloat16", m.cube.bf16, QuantityKind::kFlopRate, Need::kRequired, kRate);
  v.figure("vector", m.vector, QuantityKind::kFlopRate, Need::kRequired, kRate);
  v.figure("hbm", m.hbm, QuantityKind::kBytes, Need::kRequired, {.min = 1, .max = 0x1p52});
  v.figure("reserve", m.reserve, QuantityKind::kBytes, Need::kOptional, {.max = 0x1p52});
  v.figure("hbm_bandwidth", m.hbm_bandwidth, QuantityKind::kByteRate, Need::kRequired, kRate);
  v.block("products", m.products, Need::kOptional);
  v.block("attention", m.attention, Need::kOptional);
  v.block("memory", m.memory, Need::kOptional);
  v.block("scores", m.scores, Need::kOptional);
  v.block("tiles", m.tiles, Need::kOptional);
  v.flag("fused", m.fused);
  v.block("feeder", m.feeder, Need::kOptional);
  v.figure("host_cores", m.host_cores, QuantityKind::kNumber, Need::kOptional, kFactor);
  v.figure("launch_cube", m.launch_cube, QuantityKind::kTime, Need::kRequired, kLatency);
  v.figure("launch_vector", m.launch_vector, QuantityKind::kTime, Need::kRequired, kLatency);
  v.figure("launch_comm", m.launch_comm, QuantityKind::kTime, Need::kRequired, kLatency);
  v.block("pool", m.pool, Need::kOptional);
  v.block("flash", m.flash, Need::kOptional);
}

template <class Visitor>
void fields(Visitor& v, Level& l) {
  v.text("name", l.name, Need::kRequired);
  v.integer("devices", l.devices, Need::kOptional, {1, 1 << 20});
  v.flag("addressable", l.addressable);
  v.flag("mesh", l.mesh);
  v.flag("ring", l.ring);
  v.figure("latency", l.latency, QuantityKind::kTime, Need::kRequired, kLatency);
  v.figure("bandwidth", l.bandwidth, QuantityKind::kByteRate, Need::kRequired, kRate);
  v.figure("shared", l.shared, QuantityKind::kByteRate, Need::kOptional, kRate);
  v.block("efficiency", l.efficiency, Need::kOptional);
  v.block("all_reduce", l.all_reduce, Need::kOptional);
  v.block("all_gather", l.all_gather, Need::kOptional);
  v.block("reduce_scatter", l.reduce_scatter, Need::kOptional);
  v.block("all_to_all", l.all_to_all, Need::kOptional);
}

template <class Visitor>
void fields(Visitor& v, SoftwareMemory& m) {
  constexpr RealRange kHbm{.max = 0x1p52};
  v.figure("unused_gradients", m.unused_gradients, QuantityKind::kNumber, Need::kOptional, {.max = 16});
  v.figure("workspace", m.workspace, QuantityKind::kBytes, Need::kOptional, kHbm);
  v.figure("head_workspace", m.head_workspace, QuantityKind::kBytes, Need::kOptional, kHbm);
  v.figure("expert_workspace", m.expert_workspace, QuantityKind::kBytes, Need::kOptional, kHbm);
  v.figure("lasting_gradients", m.lasting_gradients, QuantityKind::kNumber, Need::kOptional, kYesOrNo);
  v.figure("lasting_copies", m.lasting_copies, QuantityKind::kNumber, Need::kOptional, kYesOrNo);
  v.figure("communicator", m.communicator, QuantityKind::kBytes, Need::kOptional, kHbm);
  v.figure("reserve", m.reserve, QuantityKind::kBytes, Need::kOptional, kHbm);
}

template <class Visitor>
void fields(Visitor& v, SoftwareIssue& i) {
  v.figure("in_order", i.in_order, QuantityKind::kNumber, Need::kOptional, kYesOrNo);
  v.figure("fused", i.fused, QuantityKind::kNumber, Need::kOptional, kYesOrNo);
  v.figure("joined", i.joined, QuantityKind::kNumber, Need::kOptional, kYesOrNo);
  v.figure("gradient_traffic", i.gradient_traffic, QuantityKind::kNumber, Need::kOptional, {.max = 1e3});
  v.figure("attention_traffic", i.attention_traffic, QuantityKind::kNumber, Need::kOptional, {.max = 1e3});
  v.figure("exchange_traffic", i.exchange_traffic, QuantityKind::kNumber, Need::kOptional, {.max = 1e3});
  v.block("feeder", i.feeder, Need::kOptional);
}

template <class Visitor>
void fields(Visitor& v, Software& s) {
  v.text("name", s.name, Need::kRequired);
  v.text("about", s.about, Need::kRequired);
  v.block("memory", s.memory, Need::kOptional);
  v.block("issue", s.issue, Need::kOptional);
}

// The block `kernels` of a profile, before its file is read.
struct KernelsOfProfile {
  std::string file, source;
  bool operator==(const KernelsOfProfile&) const = default;
};

template <class Visitor>
void fields(Visitor& v, KernelsOfProfile& k) {
  v.text("file", k.file, Need::kRequired);
  v.text("source", k.source, Need::kRequired);
}

template <class Visitor>
void fields(Visitor& v, Machine& m) {
  v.text("name", m.name, Need::kRequired);
  v.text("about", m.about, Need::kRequired);
  DeviceOfProfile device{m};
  v.block("device", device, Need::kRequired);
  v.list("levels", m.levels);
  v.integer("devices", m.devices, Need::kOptional, {2, 1 << 20});
  KernelsOfProfile kernels{m.kernels.file(), m.kernels.source()};
  v.block("kernels", kernels, Need::kOptional);
  if (m.kernels.empty() && !kernels.file.empty()) m.kernels = KernelTable({}, kernels.file, kernels.source);
}

}  // namespace hyperrun
