#include "runtime/device/exposed.h"

#include <algorithm>
#include <limits>

namespace hyperrun {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// A sweep over a stream in the order of time. Spans may overlap, as several messages may be under way.
class Sweep {
 public:
  Sweep(std::span<const Span> spans, const std::vector<std::size_t>& instrs)
      : spans_(spans), instrs_(instrs) {}

  bool active(std::int64_t now) {
    for (; next_ < instrs_.size() && spans_[instrs_[next_]].begin <= now; ++next_)
      until_ = std::max(until_, spans_[instrs_[next_]].end);
    return until_ > now;
  }

  // Time of the next possible change, after active(now).
  std::int64_t changes(std::int64_t now) const {
    const std::int64_t begins = next_ < instrs_.size() ? spans_[instrs_[next_]].begin : kNever;
    return until_ > now ? std::min(until_, begins) : begins;
  }

 private:
  std::span<const Span> spans_;
  const std::vector<std::size_t>& instrs_;
  std::size_t next_ = 0;
  std::int64_t until_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace

Nanos exposed_communication(std::span<const Span> spans,
                            const std::array<std::vector<std::size_t>, kStreams>& streams) {
  const auto sweep = [&](StreamKind s) { return Sweep(spans, streams[static_cast<std::size_t>(s)]); };
  std::array computing{sweep(StreamKind::kCube), sweep(StreamKind::kVector)};
  std::array communicating{sweep(StreamKind::kComm), sweep(StreamKind::kSend), sweep(StreamKind::kRecv)};
  Nanos exposed{};
  for (std::int64_t now = std::numeric_limits<std::int64_t>::min(); now < kNever;) {
    bool computes = false, communicates = false;
    std::int64_t next = kNever;
    for (Sweep& s : computing) computes |= s.active(now), next = std::min(next, s.changes(now));
    for (Sweep& s : communicating) communicates |= s.active(now), next = std::min(next, s.changes(now));
    if (communicates && !computes) exposed += Nanos(next - now);
    now = next;
  }
  return exposed;
}

}  // namespace hyperrun
