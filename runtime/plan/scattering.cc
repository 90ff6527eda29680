#include "runtime/plan/scattering.h"

#include <limits>

namespace hyperrun {
namespace {

// Of what nothing of the piece comes before.
constexpr Scattered kNone{-std::numeric_limits<double>::infinity(), 0};

}  // namespace

Scattering::Scattering(const InstrOrder& order, const std::vector<StreamKind>& streams,
                       const std::vector<double>& durations, const std::vector<std::int64_t>& bytes)
    : order_(order), streams_(streams), durations_(durations), bytes_(bytes) {}

std::vector<Scattered> Scattering::begins(std::size_t from, std::size_t to, double per_byte) const {
  const auto later = [&](const Scattered& a, const Scattered& b) {
    return a.at(per_byte) < b.at(per_byte) ? b : a;
  };
  const auto ended = [&](const Scattered& begin, std::size_t i) {
    return Scattered{begin.time + durations_[i], begin.bytes};
  };
  std::vector<Scattered> begins(to + 1 - from, kNone);
  Scattered sent = kNone;  // all that was communicated before
  begins.front() = {};
  for (std::size_t i = from; i <= to; ++i) {
    Scattered& begin = begins[i - from];
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
