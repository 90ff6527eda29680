// The pairs that attention computes, beside counting them.
#include "runtime/ir/score_pairs.h"

#include <gtest/gtest.h>

namespace hyperrun {
namespace {

bool sees(std::int64_t query, std::int64_t key, std::int64_t window) {
  return key <= query && (window == 0 || key > query - window);
}
std::int64_t weight(std::int64_t query, std::int64_t key) { return query == key ? 1 : 2; }

TEST(ScorePairs, OfTheLastQueries) {
  for (std::int64_t end = 1; end < 20; ++end)
    for (std::int64_t queries = 1; queries <= end; ++queries)
      for (const std::int64_t window : {0, 1, 2, 5, 19, 40}) {
        std::int64_t counted = 0;
        for (std::int64_t q = end - queries; q < end; ++q)
          for (std::int64_t k = 0; k < end; ++k) counted += sees(q, k, window) ? weight(q, k) : 0;
        EXPECT_EQ(double_pairs(end, queries, window), counted) << end << " " << queries << " " << window;
      }
}

TEST(ScorePairs, OfTheStepsOfARing) {
  for (const std::int64_t devices : {2, 3, 4})
    for (const std::int64_t chunk : {1, 3, 8})
      for (const std::int64_t window : {std::int64_t{1}, chunk, chunk + 1, 3 * chunk, 2 * devices * chunk}) {
        const Zigzag order{devices, chunk};
        const std::int64_t seq = 2 * chunk;
        std::int64_t all = 0;
        for (std::int64_t step = 0; step < devices; ++step) {
          std::int64_t counted = 0;
          for (std::int64_t d = 0; d < devices; ++d)
            for (std::int64_t i = 0; i < seq; ++i)
              for (std::int64_t j = 0; j < seq; ++j) {
                const std::int64_t q = order.position(d * seq + i),
                                   k = order.position((d + devices - step) % devices * seq + j);
                counted += sees(q, k, window) ? weight(q, k) : 0;
              }
          EXPECT_EQ(double_pairs_of_step(devices, step, seq, window), counted / devices)
              << devices << " " << step << " " << chunk << " " << window;
          all += counted;
        }
        EXPECT_EQ(all, double_pairs(devices * seq, devices * seq, window));
      }
}

}  // namespace
}  // namespace hyperrun
