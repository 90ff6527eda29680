// Communication by kind, compared with a count of single moments.
#include "runtime/ir/under_way.h"

#include <gtest/gtest.h>

#include <random>

namespace hyperrun {
namespace {

TEST(UnderWay, IsCountedByKindAndByWhatIsComputedBesideIt) {
  std::mt19937 random(2);
  const auto number = [&](int most) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  };
  const std::vector<TrafficKind> kinds{{"all-to-all-v", "ep"}, {"all-reduce", "dp"}};
  const instr::CollectiveKind of_kind[] = {instr::CollectiveKind::kAllToAllV,
                                           instr::CollectiveKind::kAllReduce, instr::CollectiveKind::kSend};
  for (int round = 0; round < 100; ++round) {
    Program program;
    program.mesh.axes = {{"dp", 2}, {"ep", 2}};
    std::vector<Span> spans;
    std::vector<std::size_t> kind_of;  // 2: a kind that is not measured; 3: computes
    const auto add = [&](StreamKind stream, std::size_t kind, Span span) {
      Instr instr;
      instr.stream = stream;
      instr.op = instr::Gemm{};
      if (kind < 3) {
        instr::Collective c;
        c.kind = of_kind[kind];
        c.axes = {kind == 0 ? 1 : 0};
        instr.op = c;
      }
      program.instrs.push_back(instr);
      spans.push_back(span);
      kind_of.push_back(kind);
    };
    for (const StreamKind s : {StreamKind::kVector, StreamKind::kComm, StreamKind::kCube}) {
      std::int64_t from = number(10);
      for (std::int64_t n = number(7); n > 0; --n) {
        const std::int64_t lasts = number(12);
        add(s, s == StreamKind::kComm ? static_cast<std::size_t>(number(3)) : 3, {from, from + lasts});
        from += lasts + number(8);
      }
    }
    std::vector<UnderWay> expected(kinds.size());
    for (std::size_t i = 0; i < spans.size(); ++i)
      for (std::int64_t t = spans[i].begin; kind_of[i] < 2 && t < spans[i].end; ++t) {
        bool computes = false;
        for (std::size_t c = 0; c < spans.size(); ++c)
          computes = computes || (kind_of[c] == 3 && spans[c].begin <= t && t < spans[c].end);
        expected[kind_of[i]].time += Nanos(1);
        if (!computes) expected[kind_of[i]].exposed += Nanos(1);
      }
    UnderWayByKind by_kind(program, kinds);
    EXPECT_EQ(by_kind.measure(spans), expected) << round;
    EXPECT_EQ(by_kind.measure(spans), expected) << "the same again";
  }
}

}  // namespace
}  // namespace hyperrun
