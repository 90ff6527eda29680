#include "runtime/plan/gradient_scatter_bound.h"

#include <limits>

namespace hyperrun {
namespace {

// No path from the begin.
constexpr ScatterTime kNone{-std::numeric_limits<double>::infinity(), 0};

}  // namespace

GradientScatterBound::GradientScatterBound(const InstrOrder& order, const std::vector<StreamKind>& streams,
                                           const std::vector<double>& durations,
                                           const std::vector<std::int64_t>& bytes)
    : order_(order), streams_(streams), durations_(durations), bytes_(bytes) {}

std::vector<ScatterTime> GradientScatterBound::begins(std::size_t from, std::size_t to,
                                                      double per_byte) const {
  const auto later = [&](const ScatterTime& a, const ScatterTime& b) {
    return a.at(per_byte) < b.at(per_byte) ? b : a;
  };
  const auto ended = [&](const ScatterTime& begin, std::size_t i) {
    return ScatterTime{begin.time + durations_[i], begin.bytes};
  };
  std::vector<ScatterTime> begins(to + 1 - from, kNone);
  ScatterTime sent = kNone;  // end of all earlier communication
  begins.front() = {};
  for (std::size_t i = from; i <= to; ++i) {
    ScatterTime& begin = begins[i - from];
    for (const std::int32_t before : order_.before(i))
      if (const auto b = static_cast<std::size_t>(before); b >= from)
        begin = later(begin, ended(begins[b - from], b));
    const bool communicates = streams_[i] == StreamKind::kComm;
    if (communicates) begin = later(begin, sent);
    if (begin == kNone) continue;
    if (communicates) sent = ended(begin, i);
    if (bytes_[i] == 0) continue;
    sent = later(sent, ended(begin, i));
    sent.bytes += static_cast<double>(bytes_[i]);
  }
  return begins;
}

}  // namespace hyperrun
