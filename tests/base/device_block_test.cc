#include "runtime/base/device_block.h"

#include <gtest/gtest.h>

namespace hyperrun {
namespace {

TEST(DeviceBlock, BlocksHoldEveryDeviceOnce) {
  for (const int devices : {1, 2, 7, 96, 768})
    for (const int processes : {1, 2, 3, 5, 8, 96}) {
      if (processes > devices) continue;
      int next = 0, least = devices, most = 0;
      for (int p = 0; p < processes; ++p) {
        const DeviceBlock block = block_of(p, processes, devices);
        EXPECT_EQ(block.first, next);
        for (int d = block.first; d < block.end(); ++d) EXPECT_EQ(process_of(d, processes, devices), p);
        next = block.end();
        least = std::min(least, block.count), most = std::max(most, block.count);
      }
      EXPECT_EQ(next, devices);
      EXPECT_LE(most - least, 1);
      EXPECT_GE(least, 1);
    }
}

}  // namespace
}  // namespace hyperrun
