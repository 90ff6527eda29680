#include "runtime/spec/stats_io.h"

#include "proto/report.pb.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

void write_curves(const InvocationStats& stats, proto::InvocationStats& out) {
  std::int64_t last = stats.begin;
  for (const Span& s : stats.spans) {
    out.add_spans(s.begin - last);
    out.add_spans(s.end - s.begin);
    last = s.end;
  }
  for (const Curve& curve : stats.live) {
    proto::LiveCurve& written = *out.add_live();
    std::int64_t time = stats.begin, bytes = 0;
    for (const auto& [at, live] : curve) {
      written.add_changes(at - time);
      written.add_changes(live - bytes);
      time = at;
      bytes = live;
    }
  }
}

void read_curves(const proto::InvocationStats& in, InvocationStats& stats) {
  std::int64_t last = stats.begin;
  for (int i = 0; i + 1 < in.spans_size(); i += 2) {
    const std::int64_t begin = last + in.spans(i);
    last = begin + in.spans(i + 1);
    stats.spans.push_back({begin, last});
  }
  for (std::size_t t = 0; t < kTiers && static_cast<int>(t) < in.live_size(); ++t) {
    const auto& changes = in.live(static_cast<int>(t)).changes();
    std::int64_t time = stats.begin, bytes = 0;
    for (int i = 0; i + 1 < changes.size(); i += 2) {
      time += changes[i];
      bytes += changes[i + 1];
      stats.live[t].emplace_back(time, bytes);
    }
  }
}

}  // namespace

std::string to_bytes(const InvocationStats& stats, std::int64_t shift, bool traced) {
  proto::InvocationStats out;
  out.set_begin(stats.begin + shift);
  out.set_end(stats.end + shift);
  for (Nanos t : stats.busy) out.add_busy(t.value);
  out.set_exposed(stats.exposed.value);
  for (std::size_t k = 0; k < stats.traffic.size(); ++k) {
    const Traffic& t = stats.traffic[k];
    auto& traffic = *out.add_traffic();
    traffic.set_collective(t.kind.collective);
    traffic.set_axes(t.kind.axes);
    traffic.set_count(t.count);
    traffic.set_bytes(t.bytes.value);
    traffic.set_elsewhere(t.elsewhere.value);
    if (stats.under_way.empty()) continue;
    traffic.set_time(stats.under_way[k].time.value);
    traffic.set_exposed(stats.under_way[k].exposed.value);
  }
  out.set_high_water(stats.high_water[0].value);
  for (std::size_t t = 1; t < kTiers; ++t) out.add_high_water_beyond(stats.high_water[t].value);
  out.set_live_peak(stats.live_peak.value);
  for (Bytes b : stats.live_at_peak) out.add_live_at_peak(b.value);
  if (traced) write_curves(stats, out);
  return out.SerializeAsString();
}

InvocationStats stats_from_bytes(std::string_view bytes, const std::string& place) {
  proto::InvocationStats in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      in.busy_size() != static_cast<int>(kStreams) ||
      in.live_at_peak_size() != static_cast<int>(kCategories) ||
      in.high_water_beyond_size() != static_cast<int>(kTiers) - 1)
    throw Error(Code::kControl, "a report did not arrive whole")
        .at(place)
        .fix("run the same build of hyperrun on all hosts");
  InvocationStats stats;
  stats.begin = in.begin();
  stats.end = in.end();
  for (std::size_t s = 0; s < kStreams; ++s) stats.busy[s] = Nanos(in.busy(static_cast<int>(s)));
  stats.exposed = Nanos(in.exposed());
  for (const auto& t : in.traffic()) {
    stats.traffic.push_back({{t.collective(), t.axes()}, t.count(), Bytes(t.bytes()), Bytes(t.elsewhere())});
    stats.under_way.push_back({Nanos(t.time()), Nanos(t.exposed())});
  }
  const bool unknown =
      std::ranges::all_of(stats.under_way, [](const UnderWay& u) { return u == UnderWay{}; });
  if (unknown) stats.under_way.clear();
  stats.high_water[0] = Bytes(in.high_water());
  for (std::size_t t = 1; t < kTiers; ++t)
    stats.high_water[t] = Bytes(in.high_water_beyond(static_cast<int>(t) - 1));
  stats.live_peak = Bytes(in.live_peak());
  for (std::size_t c = 0; c < kCategories; ++c)
    stats.live_at_peak[c] = Bytes(in.live_at_peak(static_cast<int>(c)));
  read_curves(in, stats);
  return stats;
}

}  // namespace hyperrun
