// The bytes of its operands that an instruction touches, compared with counts by hand.
#include "runtime/ir/touched.h"

#include <gtest/gtest.h>

namespace hyperrun {
namespace {

const Mesh kMesh{{{"dp", 2}, {"tp", 4}}};

Operand of_bytes(std::int64_t bytes, DType dtype = DType::kF32, std::int64_t empty = 0) {
  return {BufferId(0), {}, Bytes(bytes), dtype, {}, Bytes(empty)};
}

std::int64_t read_of(const Instr& instr, std::size_t input) {
  return touched(instr, instr.in[input], false, kMesh).value;
}
std::int64_t written_of(const Instr& instr, std::size_t output) {
  return touched(instr, instr.out[output], true, kMesh).value;
}

TEST(Touched, RowsOfExpertsWithoutTheRoomThatStaysEmpty) {
  Instr i;
  i.op = instr::GroupedGemm{.groups = 4, .n = 8, .k = 16, .rows = 10};
  i.in = {of_bytes(40 * 16 * 2, DType::kBF16, 30 * 16 * 2), of_bytes(4 * 8 * 16 * 2, DType::kBF16),
          of_bytes(16, DType::kI32)};
  i.out = {of_bytes(40 * 8 * 2, DType::kBF16, 30 * 8 * 2)};
  EXPECT_EQ(read_of(i, 0), 10 * 16 * 2);
  EXPECT_EQ(read_of(i, 1), 4 * 8 * 16 * 2);
  EXPECT_EQ(written_of(i, 0), 10 * 8 * 2);
}

// Three rows belong to at most three experts.
TEST(Touched, MatricesOfExpertsThatHaveRows) {
  Instr i;
  i.op = instr::GroupedGemm{.groups = 8, .n = 4, .k = 4, .rows = 3};
  i.in = {of_bytes(3 * 4 * 4), of_bytes(8 * 4 * 4 * 4), of_bytes(32, DType::kI32)};
  i.out = {of_bytes(3 * 4 * 4)};
  EXPECT_EQ(read_of(i, 1), 3 * 4 * 4 * 4);
  i.op = instr::GroupedOuter{.accumulate = true, .groups = 8, .m = 4, .n = 4, .rows = 3};
  i.out = {of_bytes(8 * 4 * 4 * 4)};
  EXPECT_EQ(written_of(i, 0), 3 * 4 * 4 * 4);
  i.op = instr::GroupedOuter{.accumulate = false, .groups = 8, .m = 4, .n = 4, .rows = 3};
  EXPECT_EQ(written_of(i, 0), 8 * 4 * 4 * 4) << "the others become zero";
}

TEST(Touched, ATileOfBlocksByItsRows) {
  Instr i;
  i.op = instr::Add{.n = 2 * 10 * 3};
  i.in = {of_bytes(2 * 10 * 3 * 4), of_bytes(2 * 10 * 3 * 4)};
  for (Operand& o : i.in) o.tile = {.index = 2, .count = 3, .blocks = 2, .rows = 10};
  i.out = {i.in[0]};
  EXPECT_EQ(read_of(i, 0), 2 * 4 * 3 * 4) << "rows 6 to 9 of each block";
  EXPECT_EQ(written_of(i, 0), 2 * 4 * 3 * 4);
}

// Each of four devices that split a table looks up a quarter of the tokens.
TEST(Touched, RowsOfATableThatAreLookedUp) {
  Instr i;
  i.op = instr::Embedding{.rows = 40, .width = 8, .vocab = 1000, .first = {{1}, 1000}};
  i.in = {of_bytes(40 * 4, DType::kI32), of_bytes(1000 * 8 * 2, DType::kBF16)};
  i.out = {of_bytes(40 * 8 * 2, DType::kBF16)};
  EXPECT_EQ(read_of(i, 1), 10 * 8 * 2);
  EXPECT_EQ(written_of(i, 0), 40 * 8 * 2);
  i.op =
      instr::EmbeddingGrad{.accumulate = true, .rows = 40, .width = 8, .vocab = 1000, .first = {{1}, 1000}};
  i.in = {of_bytes(40 * 4, DType::kI32), of_bytes(40 * 8 * 4)};
  i.out = {of_bytes(1000 * 8 * 4)};
  EXPECT_EQ(written_of(i, 0), 10 * 8 * 4);
  std::get<instr::EmbeddingGrad>(i.op).accumulate = false;
  EXPECT_EQ(written_of(i, 0), 1000 * 8 * 4) << "all of it becomes zero first";
}

// Sequences have 96 tokens in pages of 128 positions, and get 4 more.
TEST(Touched, WhatIsInThePagesOfACache) {
  Instr i;
  i.op = instr::CachedAttention{.batch = 2,
                                .seq = 4,
                                .kv_heads = 3,
                                .group = 1,
                                .head_dim = 8,
                                .value_dim = 5,
                                .pages = 8,
                                .page = 32,
                                .context = 100};
  i.in.assign(4, of_bytes(64));
  i.in.push_back(of_bytes(8 * 32 * 3 * 8 * 2, DType::kBF16));
  i.in.push_back(of_bytes(8 * 32 * 3 * 5 * 2, DType::kBF16));
  i.out = {of_bytes(64), i.in[4], i.in[5]};
  EXPECT_EQ(read_of(i, 4), 2 * 96 * 3 * 8 * 2);
  EXPECT_EQ(read_of(i, 5), 2 * 96 * 3 * 5 * 2);
  EXPECT_EQ(written_of(i, 1), 2 * 4 * 3 * 8 * 2);
  EXPECT_EQ(written_of(i, 2), 2 * 4 * 3 * 5 * 2);
  std::get<instr::CachedAttention>(i.op).window = 32;
  EXPECT_EQ(read_of(i, 4), 2 * 31 * 3 * 8 * 2) << "a window of 32 has 31 positions before its own";
  EXPECT_EQ(written_of(i, 1), 2 * 4 * 3 * 8 * 2);
}

// Two FLOPs for each pair, once for the scores and once for the values; one for a query's own key.
TEST(Work, OfAttentionFollowsThePairs) {
  Instr i;
  instr::Attention o{.batch = 2, .seq = 8, .kv_heads = 3, .group = 2, .head_dim = 5, .value_dim = 7};
  const auto flops = [&] {
    i.op = o;
    return work(i, kMesh).flops.value;
  };
  EXPECT_EQ(flops(), 2 * 3 * 2 * 64 * (5 + 7));
  o.window = 3;  // half pairs: 1 and 3 of the first two queries, 5 of each further one
  EXPECT_EQ(flops(), 2 * 3 * 2 * (1 + 3 + 6 * 5) * (5 + 7));
  o.causal = false, o.window = 0;
  EXPECT_EQ(flops(), 2 * 3 * 2 * 128 * (5 + 7));
}

TEST(Touched, ASlotOfAPortAndAPartOfACopy) {
  Instr i;
  i.op = instr::LoadPort{.slots = 4, .n = 10};
  i.in = {of_bytes(160)}, i.out = {of_bytes(40)};
  EXPECT_EQ(read_of(i, 0), 40);
  i.op = instr::Copy{.outer = 2, .parts = 4, .inner = 5, .part = {1}};
  EXPECT_EQ(read_of(i, 0), 40);
  EXPECT_EQ(written_of(i, 0), 40);
}

TEST(Touched, ATransferMovesTheRowsThatAreExpected) {
  Instr i;
  i.op = instr::Store{.bytes = 1000, .row = 10};
  i.in = {of_bytes(1000, DType::kF32, 700), of_bytes(32, DType::kI32)}, i.out = {i.in[0]};
  EXPECT_EQ(moved_bytes(i).value, 300);
  EXPECT_EQ(work(i, kMesh).moved.value, 300);
}

}  // namespace
}  // namespace hyperrun
