// trace.pftrace: the activity of every stream of every device, for ui.perfetto.dev. The executor and the
// simulator use the same writer. Packets go to disk as they come; memory holds only the names seen so far
// and, for each track, the open slices.
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
  // Arrows join slices with a common number, in the order of their starts: a send and its receive, the
  // members of one collective. A number is for one such occasion (see flow_id).
  std::span<const std::uint64_t> flows;
};

// The number of a flow, from values that name the occasion on every device alike (step, number of the
// collective or message, group). Never 0.
std::uint64_t flow_id(std::initializer_list<std::uint64_t> parts);

inline constexpr std::int32_t kAllDevices = -1;

class TraceWriter {
 public:
  // Throws kUnwritable, as does any call below.
  explicit TraceWriter(const std::filesystem::path& path);
  ~TraceWriter();  // closes; errors are lost, so call close()
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Announces a device, once, before any other call on it: a process "device 3 (host)" with one track for
  // each stream.
  void device(std::int32_t device, std::string_view host,
              std::span<const TraceStream> streams = kDeviceStreams);

  // Writes a slice. Those of one stream come in the order of their starts (an enclosing slice before those
  // within). They follow each other or nest; if two cross by a measuring error, the later one's start is
  // moved to the earlier one's end.
  void slice(const TraceSlice& slice);

  // Writes a counter's value from `time` on, such as "HBM bytes".
  void counter(std::int32_t device, std::string_view counter, Nanos time, Bytes value);

  // Writes a moment, such as the start of a step, on a device's own track or, for kAllDevices, on the run's.
  void instant(std::int32_t device, std::string_view name, Nanos time);

  // Number of slices moved so far: 0 for a simulator.
  std::int64_t moved_slices() const;

  // Ends open slices and flushes. Nothing may be written after it.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun
