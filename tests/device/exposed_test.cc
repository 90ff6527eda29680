// Exposed communication against a count of moments.
#include "runtime/device/exposed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hyperrun::testing {
namespace {

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

TEST(Exposed, IsEveryMomentAtWhichOnlyMessagesAreUnderWay) {
  std::mt19937 random(1);
  const auto number = [&](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<Span> spans;
    std::array<std::vector<std::size_t>, kStreams> streams;
    for (const StreamKind s :
         {StreamKind::kCube, StreamKind::kVector, StreamKind::kComm, StreamKind::kSend, StreamKind::kRecv}) {
      std::int64_t from = number(20);
      for (std::int64_t n = number(6); n > 0; --n) {
        const std::int64_t lasts = number(15);
        streams[at(s)].push_back(spans.size());
        spans.push_back({from, from + lasts});
        // Compute instructions run one after the other; messages may overlap.
        from += communicates(s) ? number(10) : lasts + number(10);
      }
    }
    std::int64_t expected = 0;
    for (std::int64_t t = 0; t < 300; ++t) {
      bool computes = false, sends = false;
      for (std::size_t s = 0; s < kStreams; ++s)
        for (const std::size_t i : streams[s])
          if (spans[i].begin <= t && t < spans[i].end)
            (communicates(static_cast<StreamKind>(s)) ? sends : computes) = true;
      expected += sends && !computes ? 1 : 0;
    }
    ASSERT_EQ(exposed_communication(spans, streams), Nanos(expected)) << round;
  }
}

}  // namespace
}  // namespace hyperrun::testing
