#include "runtime/report/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "proto/trace.pb.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using proto::trace::Trace;
using proto::trace::TracePacket;
using proto::trace::TrackEvent;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A trace as a viewer sees it, read by a path of its own: names resolved, events sorted by time (file
// order among equals), begins and ends of a track matched as brackets.
struct Seen {
  struct Slice {
    std::string track, name, category;
    std::int64_t start = 0, end = -1;
    std::size_t depth = 0;
    std::map<std::string, std::string> args;
    std::vector<std::uint64_t> flows;
  };
  struct Value {
    std::string track;
    std::int64_t time = 0, value = 0;
  };
  std::vector<Slice> slices;  // in the order of their starts
  std::vector<Value> counters;
  std::vector<std::string> instants;  // "track name time"
  std::map<std::string, int> tracks;  // "device 0 (a)/cube" and how often it is described
  std::vector<std::string> problems;
};

class Viewer {
 public:
  explicit Viewer(const std::filesystem::path& path) {
    HR_CHECK(trace_.ParseFromString(content(path)));
    read_state();
    std::vector<const TracePacket*> events;
    for (const auto& p : trace_.packet()) {
      if (p.has_track_event()) events.push_back(&p);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](auto* a, auto* b) { return a->timestamp() < b->timestamp(); });
    for (const auto* p : events) read_event(*p);
    for (const auto& [track, open] : open_) {
      if (!open.empty()) seen.problems.push_back("open slice on " + title(track));
    }
  }

  Seen seen;

 private:
  void read_state() {
    for (int i = 0; i < trace_.packet_size(); ++i) {
      const auto& p = trace_.packet(i);
      auto want =
          i == 0 ? TracePacket::SEQ_INCREMENTAL_STATE_CLEARED : TracePacket::SEQ_NEEDS_INCREMENTAL_STATE;
      if (p.sequence_flags() != static_cast<std::uint32_t>(want)) seen.problems.push_back("sequence flags");
      if (p.trusted_packet_sequence_id() != trace_.packet(0).trusted_packet_sequence_id() ||
          p.trusted_packet_sequence_id() == 0) {
        seen.problems.push_back("sequence id");
      }
      for (const auto& n : p.interned_data().event_names()) add(names_, n);
      for (const auto& n : p.interned_data().event_categories()) add(categories_, n);
      for (const auto& n : p.interned_data().debug_annotation_names()) add(keys_, n);
      // An event may use what it or an earlier packet has interned, and tracks that are described.
      if (p.has_track_event()) check_known(p.track_event());
      if (p.has_track_descriptor()) describe(p.track_descriptor());
    }
  }

  void add(std::map<std::uint64_t, std::string>& table, const proto::trace::InternedString& s) {
    if (s.iid() == 0 || !table.emplace(s.iid(), s.name()).second) seen.problems.push_back("interned twice");
  }

  void describe(const proto::trace::TrackDescriptor& d) {
    if (d.uuid() == 0 || parents_.contains(d.uuid())) seen.problems.push_back("bad uuid");
    if (d.has_parent_uuid() && !parents_.contains(d.parent_uuid())) seen.problems.push_back("unknown parent");
    parents_[d.uuid()] = d.parent_uuid();
    titles_[d.uuid()] = d.has_process() ? d.process().process_name() : d.name();
    if (d.has_process() && d.process().pid() <= 0) seen.problems.push_back("pid");
    if (d.has_counter()) counters_.insert(d.uuid());
    ++seen.tracks[title(d.uuid())];
  }

  void check_known(const TrackEvent& e) {
    if (!parents_.contains(e.track_uuid())) seen.problems.push_back("unknown track");
    if (e.has_name_iid() && !names_.contains(e.name_iid())) seen.problems.push_back("unknown name");
    for (auto c : e.category_iids()) {
      if (!categories_.contains(c)) seen.problems.push_back("unknown category");
    }
    for (const auto& a : e.debug_annotations()) {
      if (!keys_.contains(a.name_iid())) seen.problems.push_back("unknown key");
    }
    bool counts = e.type() == TrackEvent::TYPE_COUNTER;
    if (counts != counters_.contains(e.track_uuid())) seen.problems.push_back("counter on a wrong track");
  }

  void read_event(const TracePacket& p) {
    const auto& e = p.track_event();
    auto time = static_cast<std::int64_t>(p.timestamp());
    auto& open = open_[e.track_uuid()];
    switch (e.type()) {
      case TrackEvent::TYPE_SLICE_BEGIN: {
        Seen::Slice s;
        s.track = title(e.track_uuid());
        s.name = names_[e.name_iid()];
        for (auto c : e.category_iids()) s.category += categories_[c];
        s.start = time;
        s.depth = open.size();
        for (const auto& a : e.debug_annotations()) s.args[keys_[a.name_iid()]] = text(a);
        s.flows.assign(e.flow_ids().begin(), e.flow_ids().end());
        open.push_back(seen.slices.size());
        seen.slices.push_back(s);
        break;
      }
      case TrackEvent::TYPE_SLICE_END:
        if (open.empty()) {
          seen.problems.push_back("end without a begin");
        } else {
          seen.slices[open.back()].end = time;
          open.pop_back();
        }
        break;
      case TrackEvent::TYPE_COUNTER:
        seen.counters.push_back({title(e.track_uuid()), time, e.counter_value()});
        break;
      case TrackEvent::TYPE_INSTANT:
        seen.instants.push_back(title(e.track_uuid()) + ' ' + names_[e.name_iid()] + ' ' +
                                std::to_string(time));
        break;
      default: seen.problems.push_back("event type");
    }
  }

  static std::string text(const proto::trace::DebugAnnotation& a) {
    if (a.has_int_value()) return std::to_string(a.int_value());
    if (a.has_double_value()) return std::to_string(a.double_value());
    return a.string_value();
  }

  std::string title(std::uint64_t track) {
    std::string own = titles_[track];
    return parents_[track] == 0 ? own : title(parents_[track]) + '/' + own;
  }

  Trace trace_;
  std::map<std::uint64_t, std::string> names_, categories_, keys_, titles_;
  std::map<std::uint64_t, std::uint64_t> parents_;
  std::set<std::uint64_t> counters_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;
};

TraceSlice slice(std::string_view name, std::int64_t start, std::int64_t end,
                 TraceStream stream = TraceStream::kCube, std::int32_t device = 0) {
  TraceSlice s;
  s.device = device;
  s.stream = stream;
  s.name = name;
  s.category = "gemm";
  s.start = Nanos(start);
  s.end = Nanos(end);
  return s;
}

std::vector<std::string> spans(const Seen& seen) {
  std::vector<std::string> out;
  for (const auto& s : seen.slices) {
    out.push_back(s.name + ' ' + std::to_string(s.start) + '-' + std::to_string(s.end) + " depth " +
                  std::to_string(s.depth));
  }
  return out;
}

TEST(Trace, TracksOfDevicesAndStreams) {
  TemporaryDirectory tmp;
  TraceWriter writer(tmp / "t");
  writer.device(0, "alpha");
  writer.device(3, "beta");
  writer.counter(3, "HBM bytes", Nanos(5), kMiB);
  writer.counter(3, "flash bytes", Nanos(6), kKiB);
  writer.counter(kAllDevices, "pool bytes", Nanos(8), kGiB * 100);
  writer.counter(3, "HBM bytes", Nanos(7), kMiB * 2);
  writer.instant(kAllDevices, "step 1", Nanos(1));
  writer.instant(3, "lost", Nanos(9));
  writer.close();

  auto seen = Viewer(tmp / "t").seen;
  EXPECT_THAT(seen.problems, IsEmpty());
  std::map<std::string, int> want = {{"run", 1}};
  for (std::string device : {"device 0 (alpha)", "device 3 (beta)"}) {
    want[device] = 1;
    for (std::string s : {"cube", "vector", "comm", "dma-in", "dma-out", "send", "recv"})
      want[device + '/' + s] = 1;
  }
  want["device 3 (beta)/HBM bytes"] = want["device 3 (beta)/flash bytes"] = want["run/pool bytes"] = 1;
  EXPECT_EQ(seen.tracks, want);
  ASSERT_EQ(seen.counters.size(), 4u);
  EXPECT_EQ(seen.counters[3].track, "run/pool bytes");
  EXPECT_EQ(seen.counters[3].value, 100LL << 30);
  EXPECT_EQ(seen.counters[2].track, "device 3 (beta)/HBM bytes");
  EXPECT_EQ(seen.counters[2].value, 2 << 20);
  EXPECT_THAT(seen.instants, ElementsAre("run step 1 1", "device 3 (beta) lost 9"));
}

TEST(Trace, SlicesKeepAllTheyWereGiven) {
  TemporaryDirectory tmp;
  TraceWriter writer(tmp / "t");
  writer.device(0, "a");
  writer.device(1, "a");
  std::uint64_t flow = flow_id({1, 2});
  for (int device : {0, 1}) {
    auto s = slice("all-reduce wq", 10 + device, 20, TraceStream::kComm, device);
    std::vector<TraceArg> args = {{"bytes", std::int64_t{4096}}, {"axis", "tp"}, {"share", 0.5}};
    s.category = "all-reduce";
    s.args = args;
    s.flows = {&flow, 1};
    writer.slice(s);
  }
  writer.close();

  auto seen = Viewer(tmp / "t").seen;
  EXPECT_THAT(seen.problems, IsEmpty());
  ASSERT_EQ(seen.slices.size(), 2u);
  for (int device : {0, 1}) {
    const auto& s = seen.slices[static_cast<std::size_t>(device)];
    EXPECT_EQ(s.track, "device " + std::to_string(device) + " (a)/comm");
    EXPECT_EQ(s.category, "all-reduce");
    EXPECT_EQ(s.start, 10 + device);
    EXPECT_EQ(s.end, 20);
    EXPECT_EQ(s.args,
              (std::map<std::string, std::string>{{"bytes", "4096"}, {"axis", "tp"}, {"share", "0.500000"}}));
    EXPECT_THAT(s.flows, ElementsAre(flow));
  }
}

TEST(Trace, NeighboursDoNotNestAndChildrenDo) {
  TemporaryDirectory tmp;
  TraceWriter writer(tmp / "t");
  writer.device(0, "a");
  writer.slice(slice("outer", 0, 100));
  writer.slice(slice("inner", 0, 50));
  writer.slice(slice("empty", 50, 50));
  writer.slice(slice("next", 50, 100));
  writer.slice(slice("after", 100, 120));
  EXPECT_EQ(writer.moved_slices(), 0);
  writer.close();
  auto seen = Viewer(tmp / "t").seen;
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_THAT(spans(seen), ElementsAre("outer 0-100 depth 0", "inner 0-50 depth 1", "empty 50-50 depth 1",
                                       "next 50-100 depth 1", "after 100-120 depth 0"));
}

TEST(Trace, CrossingSlicesAreMovedApart) {
  TemporaryDirectory tmp;
  TraceWriter writer(tmp / "t");
  writer.device(0, "a");
  writer.slice(slice("first", 0, 100));
  writer.slice(slice("late", 99, 130));   // crosses by one
  writer.slice(slice("early", 90, 140));  // starts before its forerunner
  writer.slice(slice("lost", 10, 20));    // lies wholly before it
  EXPECT_EQ(writer.moved_slices(), 3);
  writer.close();
  auto seen = Viewer(tmp / "t").seen;
  EXPECT_THAT(seen.problems, IsEmpty());
  EXPECT_THAT(spans(seen), ElementsAre("first 0-100 depth 0", "late 100-130 depth 0", "early 130-140 depth 0",
                                       "lost 130-130 depth 1"));
}

// For slices in any order of tracks the brackets match, and slices in order are left unchanged.
TEST(Trace, ManyRandomSlices) {
  TemporaryDirectory tmp;
  TraceWriter writer(tmp / "t");
  std::mt19937 random(7);
  auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  constexpr int kDevices = 4;
  for (int d = 0; d < kDevices; ++d) writer.device(d, "host");
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> clock;
  std::int64_t busy = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto device = below(kDevices), stream = below(5);
    auto& now = clock[{device, stream}];
    auto start = now + below(3), end = start + below(20);
    now = end;
    busy += end - start;
    std::string name = "op " + std::to_string(below(50));
    writer.slice(
        slice(name, start, end, static_cast<TraceStream>(stream), static_cast<std::int32_t>(device)));
  }
  EXPECT_EQ(writer.moved_slices(), 0);
  writer.close();
  auto seen = Viewer(tmp / "t").seen;
  EXPECT_THAT(seen.problems, IsEmpty());
  ASSERT_EQ(seen.slices.size(), 20'000u);
  std::int64_t shown = 0;
  for (const auto& s : seen.slices) {
    EXPECT_EQ(s.depth, 0u);
    shown += s.end - s.start;
  }
  EXPECT_EQ(shown, busy);
}

TEST(Trace, NamesAreWrittenOnce) {
  TemporaryDirectory tmp;
  std::string name(200, 'n');
  TraceWriter writer(tmp / "t");
  writer.device(0, "a");
  for (int i = 0; i < 1000; ++i) writer.slice(slice(name, i * 10, i * 10 + 10));
  writer.close();
  EXPECT_LT(std::filesystem::file_size(tmp / "t"), 1000u * 50);
}

TEST(Trace, ADiskThatIsFullIsAnError) {
  auto error = error_of([] {
    TraceWriter writer("/dev/full");
    writer.device(0, "a");
    for (int i = 0; i < 10'000; ++i) writer.slice(slice("op", i * 10, i * 10 + 10));
    writer.close();
  });
  EXPECT_EQ(error.code(), Code::kUnwritable);
  EXPECT_EQ(error.place(), "/dev/full");
  EXPECT_EQ(error_of([] { TraceWriter("/nowhere/t"); }).code(), Code::kUnwritable);
}

TEST(Trace, FlowIdsDifferByEachPartAndByOrder) {
  std::set<std::uint64_t> ids = {flow_id({}), flow_id({0}), flow_id({0, 0})};
  for (std::uint64_t a = 0; a < 100; ++a) {
    for (std::uint64_t b = 0; b < 100; ++b) ids.insert(flow_id({a, b, 0}));
  }
  EXPECT_EQ(ids.size(), 10'003u);
  EXPECT_FALSE(ids.contains(0));
}

}  // namespace
}  // namespace hyperrun
