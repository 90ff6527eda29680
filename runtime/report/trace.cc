#include "runtime/report/trace.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/trace.pb.h"
#include "runtime/report/file.h"

namespace hyperrun {
namespace {

using proto::trace::InternedData;
using proto::trace::TracePacket;
using proto::trace::TrackDescriptor;
using proto::trace::TrackEvent;

constexpr std::uint32_t kSequence = 1;      // one writer, one sequence
constexpr std::uint64_t kRunTrack = 1;      // track for moments of all devices
constexpr std::int32_t kFirstPid = 10'000;  // device 3 is "pid" 10003: 0 has a meaning of its own
constexpr int kTraceStreams = 8;
constexpr std::uint32_t kPacketTag = 1 << 3 | 2;  // Trace.packet, length-delimited

// Number of a track of a device: 0 is the device, its streams count from 1, its counters follow.
std::uint64_t track_of(std::int32_t device, std::uint64_t part) {
  return (static_cast<std::uint64_t>(device) + 1) << 16 | part;
}
std::uint64_t stream_track(std::int32_t device, TraceStream stream) {
  return track_of(device, 1 + static_cast<std::uint64_t>(stream));
}

// The strings that go into the file once and are a number from then on.
class Interner {
 public:
  // Returns the string's number; `add` is called with it the first time.
  template <class Add>
  std::uint64_t id(std::string_view text, Add add) {
    auto found = ids_.find(text);
    if (found != ids_.end()) return found->second;
    std::uint64_t iid = ids_.size() + 1;
    ids_.emplace(text, iid);
    auto* entry = add();
    entry->set_iid(iid);
    entry->set_name(std::string(text));
    return iid;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> ids_;
};

// The ends of a stream's open slices, the innermost last.
struct OpenSlices {
  std::vector<Nanos> ends;
  Nanos last_start{};
};

}  // namespace

std::string_view name(TraceStream stream) {
  switch (stream) {
    case TraceStream::kCube: return "cube";
    case TraceStream::kVector: return "vector";
    case TraceStream::kComm: return "comm";
    case TraceStream::kDmaIn: return "dma-in";
    case TraceStream::kDmaOut: return "dma-out";
    case TraceStream::kSend: return "send";
    case TraceStream::kRecv: return "recv";
    case TraceStream::kProgram: return "program";
  }
  return "?";
}

std::uint64_t flow_id(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t h = 0x9e3779b97f4a7c15u;
  for (auto part : parts) {
    // This is the finalizer of SplitMix64, over each part in turn: equal parts in another order differ.
    h += part + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    h ^= h >> 31;
  }
  return h == 0 ? 1 : h;
}

struct TraceWriter::Impl {
  explicit Impl(const std::filesystem::path& path)
      : file(path, O_WRONLY | O_CREAT | O_TRUNC), stream(file.fd(), 1 << 16) {}

  // Writes `packet` and clears it. Its memory is kept for the next one.
  void emit() {
    HR_CHECK(!closed, "a trace is written after close");
    packet.set_trusted_packet_sequence_id(kSequence);
    packet.set_sequence_flags(first ? TracePacket::SEQ_INCREMENTAL_STATE_CLEARED
                                    : TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    if (first) packet.set_first_packet_on_sequence(true);
    first = false;
    {
      google::protobuf::io::CodedOutputStream out(&stream);
      out.WriteVarint32(kPacketTag);
      out.WriteVarint32(static_cast<std::uint32_t>(packet.ByteSizeLong()));
      packet.SerializeWithCachedSizes(&out);
      if (out.HadError()) throw unwritable(file.path(), "write the trace", stream.GetErrno());
    }
    packet.Clear();
  }

  TrackEvent& event(std::uint64_t track, TrackEvent::Type type, Nanos time) {
    packet.set_timestamp(static_cast<std::uint64_t>(std::max<std::int64_t>(time.value, 0)));
    auto& e = *packet.mutable_track_event();
    e.set_track_uuid(track);
    e.set_type(type);
    return e;
  }

  std::uint64_t name_id(std::string_view text) {
    return names.id(text, [&] { return packet.mutable_interned_data()->add_event_names(); });
  }
  std::uint64_t category_id(std::string_view text) {
    return categories.id(text, [&] { return packet.mutable_interned_data()->add_event_categories(); });
  }
  std::uint64_t key_id(std::string_view text) {
    return keys.id(text, [&] { return packet.mutable_interned_data()->add_debug_annotation_names(); });
  }

  void add_arg(TrackEvent& e, const TraceArg& arg) {
    auto& annotation = *e.add_debug_annotations();
    annotation.set_name_iid(key_id(arg.key));
    if (const auto* i = std::get_if<std::int64_t>(&arg.value)) {
      annotation.set_int_value(*i);
    } else if (const auto* d = std::get_if<double>(&arg.value)) {
      annotation.set_double_value(*d);
    } else {
      annotation.set_string_value(std::string(std::get<std::string_view>(arg.value)));
    }
  }

  // Ends slices that are over at `time`. An end is written only now, before anything that starts at the same
  // moment: readers sort by time and keep the file's order among equals.
  void end_until(std::uint64_t track, OpenSlices& open, Nanos time) {
    while (!open.ends.empty() && open.ends.back() <= time) {
      event(track, TrackEvent::TYPE_SLICE_END, open.ends.back());
      emit();
      open.ends.pop_back();
    }
  }

  // The start of the slice, after any slice that it would cross. Ends slices that are over by then.
  Nanos place(std::uint64_t track, OpenSlices& open, Nanos start, Nanos end) {
    Nanos wanted = start;
    start = std::max(start, open.last_start);
    end_until(track, open, start);
    while (!open.ends.empty() && open.ends.back() < end) {
      start = open.ends.back();
      end_until(track, open, start);
    }
    if (start != wanted) ++moved;
    return start;
  }

  // The track of a device itself, or the run's.
  std::uint64_t owner_track(std::int32_t device) const {
    if (device == kAllDevices) return kRunTrack;
    HR_CHECK(tracks.contains(stream_track(device, TraceStream::kCube)),
             "no device " + std::to_string(device));
    return track_of(device, 0);
  }

  std::uint64_t counter_track(std::int32_t device, std::string_view counter) {
    auto [found, added] = counters.try_emplace({device, std::string(counter)}, 0);
    if (!added) return found->second;
    int rank = kTraceStreams + ++counters_of[device];
    found->second = track_of(device, static_cast<std::uint64_t>(rank));
    auto& track = *packet.mutable_track_descriptor();
    track.set_uuid(found->second);
    track.set_parent_uuid(owner_track(device));
    track.set_name(std::string(counter));
    track.set_sibling_order_rank(rank);
    track.mutable_counter()->set_unit(proto::trace::CounterDescriptor::UNIT_SIZE_BYTES);
    emit();
    return found->second;
  }

  OutputFile file;
  google::protobuf::io::FileOutputStream stream;
  TracePacket packet;
  Interner names, categories, keys;
  std::unordered_map<std::uint64_t, OpenSlices> tracks;  // tracks of announced streams
  std::map<std::pair<std::int32_t, std::string>, std::uint64_t> counters;
  std::unordered_map<std::int32_t, int> counters_of;
  std::int64_t moved = 0;
  bool first = true, closed = false;
};

TraceWriter::TraceWriter(const std::filesystem::path& path) : impl_(std::make_unique<Impl>(path)) {
  auto& track = *impl_->packet.mutable_track_descriptor();
  track.set_uuid(kRunTrack);
  track.set_name("run");
  impl_->emit();
}

TraceWriter::~TraceWriter() {
  try {
    close();
  } catch (const std::exception&) {  // a destructor cannot report it
  }
}

void TraceWriter::device(std::int32_t device, std::string_view host, std::span<const TraceStream> streams) {
  HR_CHECK(device >= 0);
  auto& process = *impl_->packet.mutable_track_descriptor();
  process.set_uuid(track_of(device, 0));
  process.set_child_ordering(TrackDescriptor::EXPLICIT);
  process.mutable_process()->set_pid(kFirstPid + device);
  std::string title = fmt::format("device {} ({})", device, host);
  process.mutable_process()->set_process_name(title);
  impl_->emit();
  for (const TraceStream stream : streams) {
    auto& track = *impl_->packet.mutable_track_descriptor();
    track.set_uuid(stream_track(device, stream));
    track.set_parent_uuid(track_of(device, 0));
    track.set_name(std::string(name(stream)));
    track.set_sibling_order_rank(static_cast<int>(stream));
    impl_->emit();
    bool added = impl_->tracks.try_emplace(stream_track(device, stream)).second;
    HR_CHECK(added, fmt::format("device {} is announced twice", device));
  }
}

void TraceWriter::slice(const TraceSlice& slice) {
  HR_CHECK(slice.start <= slice.end, std::string(slice.name));
  auto track = stream_track(slice.device, slice.stream);
  auto found = impl_->tracks.find(track);
  HR_CHECK(found != impl_->tracks.end(), "no device " + std::to_string(slice.device));

  auto& open = found->second;
  Nanos start = impl_->place(track, open, slice.start, slice.end);
  auto& e = impl_->event(track, TrackEvent::TYPE_SLICE_BEGIN, start);
  e.set_name_iid(impl_->name_id(slice.name));
  if (!slice.category.empty()) e.add_category_iids(impl_->category_id(slice.category));
  for (const auto& arg : slice.args) impl_->add_arg(e, arg);
  for (auto flow : slice.flows) e.add_flow_ids(flow);
  impl_->emit();
  open.last_start = start;
  open.ends.push_back(std::max(start, slice.end));
}

void TraceWriter::counter(std::int32_t device, std::string_view counter, Nanos time, Bytes value) {
  auto track = impl_->counter_track(device, counter);
  impl_->event(track, TrackEvent::TYPE_COUNTER, time).set_counter_value(value.value);
  impl_->emit();
}

void TraceWriter::instant(std::int32_t device, std::string_view name, Nanos time) {
  auto& e = impl_->event(impl_->owner_track(device), TrackEvent::TYPE_INSTANT, time);
  e.set_name_iid(impl_->name_id(name));
  impl_->emit();
}

std::int64_t TraceWriter::moved_slices() const { return impl_->moved; }

void TraceWriter::close() {
  if (impl_->closed) return;
  for (auto& [track, open] : impl_->tracks) {
    if (!open.ends.empty()) impl_->end_until(track, open, open.ends.front());
  }
  impl_->closed = true;
  if (!impl_->stream.Flush())
    throw unwritable(impl_->file.path(), "write the trace", impl_->stream.GetErrno());
  impl_->file.close();
}

}  // namespace hyperrun
