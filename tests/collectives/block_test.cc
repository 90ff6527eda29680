#include "collectives/block.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace hyperrun {
namespace {

std::byte* at(std::vector<char>& v) { return reinterpret_cast<std::byte*>(v.data()); }

TEST(Block, AdjoiningLoopsAreOneRun) {
  std::vector<char> v(1000);
  const auto block = [&](std::int64_t outer, int p, int i, std::int64_t runs, std::int64_t pitch) {
    const CollectiveArgs args{.kind = Collective::kAllGather,
                              .dtype = DType::kBF16,
                              .outer = outer,
                              .inner = 6,
                              .runs = runs,
                              .pitch = pitch};
    return parts_of_all(args, p, at(v)).of(i);
  };
  EXPECT_TRUE(block(1, 4, 2, 1, 0).contiguous());
  EXPECT_TRUE(block(7, 1, 0, 1, 0).contiguous());
  EXPECT_FALSE(block(7, 2, 0, 1, 0).contiguous());
  EXPECT_EQ(block(7, 2, 0, 1, 0).bytes(), 84);
  EXPECT_TRUE(block(1, 2, 1, 1, 9).contiguous());
  EXPECT_TRUE(block(7, 1, 0, 3, 2).contiguous()) << "runs that adjoin";
  EXPECT_FALSE(block(1, 2, 1, 2, 9).contiguous());
  EXPECT_EQ(block(3, 2, 1, 2, 9).bytes(), 36);
  EXPECT_EQ(block(3, 2, 1, 2, 9).base - at(v), 36);
}

// Packing a range gives the same range of the whole packed block; unpacking puts every byte back.
TEST(Block, RangesPackAndUnpack) {
  std::vector<char> v(360);
  std::iota(v.begin(), v.end(), 0);
  const CollectiveArgs args{.kind = Collective::kAllToAll,
                            .dtype = DType::kBF16,
                            .all_to_all = {.a = 2, .x = 6, .b = 2, .y = 6, .c = 2}};
  for (int peer = 0; peer < 2; ++peer) {
    const Block block = all_to_all_sources(args, 2, at(v)).of(peer);
    std::vector<char> whole(static_cast<std::size_t>(block.bytes()));
    copy(contiguous_block(at(whole), block.bytes()), block);
    for (std::int64_t from = 0; from < block.bytes(); from += 7) {
      for (std::int64_t n = 1; from + n <= block.bytes(); n += 13) {
        std::vector<char> part(static_cast<std::size_t>(n));
        pack(at(part), block, from, n);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + from));
        std::vector<char> copy_of_v = v;
        for (char& c : part) c = static_cast<char>(c + 1);
        Block target = block;
        target.base = at(copy_of_v) + (block.base - at(v));
        unpack(target, from, at(part), n);
        std::vector<char> again(static_cast<std::size_t>(n));
        pack(at(again), target, from, n);
        ASSERT_EQ(again, part);
        int changed = 0;
        for (std::size_t i = 0; i < v.size(); ++i) changed += v[i] != copy_of_v[i] ? 1 : 0;
        ASSERT_EQ(changed, n);
      }
    }
  }
}

}  // namespace
}  // namespace hyperrun
