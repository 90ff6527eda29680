// trace.pftrace: what every stream of every device did, for ui.perfetto.dev. The executor and the
// simulator write with the same writer. Packets go to disk as they come; in memory are only the names
// seen so far and, for each track, the slices that are still open.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "runtime/base/units.h"

namespace hyperrun {

enum class TraceStream : std::uint8_t { kCube, kVector, kComm, kDmaIn, kDmaOut, kSend, kRecv, kProgram };
std::string_view name(TraceStream stream);  // "cube", ..., "program": which of several runs

inline constexpr std::array kDeviceStreams{TraceStream::kCube,  TraceStream::kVector, TraceStream::kComm,
                                           TraceStream::kDmaIn, TraceStream::kDmaOut, TraceStream::kSend,
                                           TraceStream::kRecv};

struct TraceArg {
  std::string_view key;  // "bytes", "flops", "axis", "buffer"
  std::variant<std::int64_t, double, std::string_view> value;
};

// All times are nanoseconds since the start of the run.
struct TraceSlice {
  std::int32_t device = 0;
  TraceStream stream = TraceStream::kCube;
  std::string_view name;      // "layers.0.attention.wq"
  std::string_view category;  // "gemm"
  Nanos start{}, end{};
  std::span<const TraceArg> args;
  // Slices with a number in common are joined by arrows, in the order of their starts: a send and its
  // receive, the members of one collective. A number is for one such occasion (see flow_id).
  std::span<const std::uint64_t> flows;
};

// A number for a flow from what names the occasion on every device alike (step, collective's or message's
// number, group). Never 0.
std::uint64_t flow_id(std::initializer_list<std::uint64_t> parts);

inline constexpr std::int32_t kAllDevices = -1;

class TraceWriter {
 public:
  // Throws kUnwritable, here or in any call below.
  explicit TraceWriter(const std::filesystem::path& path);
  ~TraceWriter();  // closes; errors are lost, so call close()
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Once for each device, before anything of it: a process "device 3 (host)" with a track a stream.
  void device(std::int32_t device, std::string_view host,
              std::span<const TraceStream> streams = kDeviceStreams);

  // On one stream in the order of their starts (an enclosing slice before those within). Slices of a
  // stream follow each other or nest; of two that cross by a measuring error the later one's start is
  // moved to the earlier one's end.
  void slice(const TraceSlice& slice);

  // The value from `time` on, such as "HBM bytes".
  void counter(std::int32_t device, std::string_view counter, Nanos time, Bytes value);

  // A moment, such as the start of a step, on a device's own track or, for kAllDevices, on the run's.
  void instant(std::int32_t device, std::string_view name, Nanos time);

  // How many slices had to be moved so far: 0 for a simulator.
  std::int64_t moved_slices() const;

  // Ends open slices and flushes. Nothing may be written after it.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun
