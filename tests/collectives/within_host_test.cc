// The bytes that stay on a host, against the steps of the messages themselves.
#include <gtest/gtest.h>

#include <vector>

#include "collectives/cost.h"
#include "collectives/message_schedule.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kSlotBytes = 128;

// Returns the bytes that stay on hosts, and all bytes.
std::int64_t expect_as_scheduled(Algorithm algorithm, CollectiveArgs args, int hosts, int per_host) {
  const int p = hosts * per_host;
  std::vector<std::byte> slots(static_cast<std::size_t>(p * kSlotBytes));
  std::int64_t within = 0;
  for (int i = 0; i < p; ++i) {
    const MessageSchedule schedule(algorithm, args, p, i, slots.data(), kSlotBytes);
    std::int64_t all = 0, sent = 0;
    for (int k = 0; k < schedule.steps(); ++k) {
      const Transfer& send = schedule.step(k).send;
      if (send.peer < 0) continue;
      all += send.bytes;
      if (send.peer / per_host == i / per_host) sent += send.bytes;
    }
    const Place place{{p, hosts, per_host}, i, i % per_host, i / per_host};
    EXPECT_EQ(wire_bytes(args, algorithm, place).value, all) << i;
    EXPECT_EQ(bytes_within_host(args, algorithm, place).value, sent) << i;
    within += sent;
  }
  return within;
}

TEST(BytesWithinHost, AreThoseOfTheSteps) {
  for (const int hosts : {2, 3})
    for (const int per_host : {1, 2, 3, 4, 8})
      for (const std::int64_t n : {96, 1000}) {
        SCOPED_TRACE(std::to_string(hosts) + " x " + std::to_string(per_host) + ", " + std::to_string(n));
        const int p = hosts * per_host;
        CollectiveArgs args{.kind = Collective::kAllReduce, .inner = n};
        for (const Algorithm a : {Algorithm::kRing, Algorithm::kHalvingDoubling, Algorithm::kPairwise})
          EXPECT_EQ(expect_as_scheduled(a, args, hosts, per_host) > 0, per_host > 1);
        args = {.kind = Collective::kReduceScatter, .outer = 3, .inner = n};
        for (const Algorithm a : {Algorithm::kRing, Algorithm::kPairwise})
          expect_as_scheduled(a, args, hosts, per_host);
        expect_as_scheduled(Algorithm::kRing, {.kind = Collective::kAllGather, .outer = 2, .inner = n}, hosts,
                            per_host);
        expect_as_scheduled(Algorithm::kPairwise, {.kind = Collective::kShift, .inner = n}, hosts, per_host);
        const AllToAllShape shape{.a = 1, .x = p, .b = 2, .y = p, .c = n};
        expect_as_scheduled(Algorithm::kPairwise, {.kind = Collective::kAllToAll, .all_to_all = shape}, hosts,
                            per_host);
        for (const int root : {0, p - 1})
          expect_as_scheduled(Algorithm::kBinomial,
                              {.kind = Collective::kBroadcast, .inner = n, .peer = root}, hosts, per_host);
        std::vector<std::int64_t> counts(static_cast<std::size_t>(p));
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<std::int64_t>(7 * i + 1);
        args = {.kind = Collective::kAllToAllV};
        args.send_counts = args.recv_counts = counts;
        expect_as_scheduled(Algorithm::kPairwise, args, hosts, per_host);
      }
}

}  // namespace
}  // namespace hyperrun
