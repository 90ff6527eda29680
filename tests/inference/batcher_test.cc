// Continuous batching on a model machine that knows only the content of its pages. A sequence must get the
// same tokens as it gets alone.
#include "runtime/inference/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "runtime/base/error.h"
#include "runtime/ir/token.h"
#include "tests/support/errors.h"

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;

// The next "drawn" token: a hash of all tokens of the sequence so far.
std::int32_t next_token(const std::vector<std::int32_t>& text, std::int32_t id) {
  std::uint64_t h = 1469598103934665603ULL + static_cast<std::uint64_t>(id);
  for (const std::int32_t t : text) h = (h ^ static_cast<std::uint64_t>(t + 1)) * 1099511628211ULL;
  return static_cast<std::int32_t>(h >> 40) % 50;
}

std::vector<std::int32_t> alone(const Prompt& prompt, const std::vector<std::int32_t>& ends) {
  std::vector<std::int32_t> text = prompt.tokens, grown;
  while (std::ssize(grown) < prompt.grow) {
    grown.push_back(next_token(text, prompt.id));
    text.push_back(grown.back());
    if (std::ranges::count(ends, grown.back()) > 0) break;
  }
  return grown;
}

// Ends a pass; each token gets a log probability of its own.
std::vector<SampledToken> done(Batcher& batcher, const std::vector<std::int32_t>& drawn) {
  std::vector<float> logp;
  for (const std::int32_t token : drawn) logp.push_back(-0.5F * static_cast<float>(token));
  return batcher.done(drawn, logp);
}

class Machine {
 public:
  explicit Machine(const GenerationShape& shape)
      : shape_(shape), pages_(static_cast<std::size_t>(shape.groups * shape.pages * shape.page), -1) {}

  std::vector<std::int32_t> run(const GenerationPass& pass) {
    const Requests& r = pass.requests;
    EXPECT_EQ(r.tokens, pass.prefill ? shape_.chunk : 1);
    const std::int64_t rows = std::ssize(r.ids) / r.tokens;
    EXPECT_EQ(rows, pass.prefill ? shape_.prompts : shape_.slots);
    EXPECT_EQ(std::ssize(r.rows), rows * shape_.width());
    std::vector<std::int32_t> drawn;
    std::set<std::int64_t> written;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int32_t* numbers = r.rows.data() + row * r.width;
      const std::int64_t group = row / (rows / shape_.groups), start = numbers[kRequestStart];
      const auto place = [&](std::int64_t p) {
        return (group * shape_.pages + numbers[kRequestPages + p / shape_.page]) * shape_.page +
               p % shape_.page;
      };
      std::vector<std::int32_t> text;
      for (std::int64_t p = 0; p < start; ++p) text.push_back(pages_[static_cast<std::size_t>(place(p))]);
      for (std::int64_t i = 0; i < numbers[kRequestCount]; ++i) {
        text.push_back(r.ids[static_cast<std::size_t>(row * r.tokens + i)]);
        pages_[static_cast<std::size_t>(place(start + i))] = text.back();
        EXPECT_TRUE(written.insert(place(start + i)).second) << "two sequences write to one place";
      }
      drawn.push_back(next_token(text, numbers[kRequestId]));
      tokens += numbers[kRequestCount];
    }
    ++passes;
    return drawn;
  }

  std::int64_t passes = 0, tokens = 0;

 private:
  GenerationShape shape_;
  std::vector<std::int32_t> pages_;
};

std::map<std::int32_t, std::vector<std::int32_t>> run(Batcher& batcher, Machine& machine) {
  std::map<std::int32_t, std::vector<std::int32_t>> grown;
  std::set<std::int32_t> ended;
  while (const auto pass = batcher.next()) {
    EXPECT_FALSE(batcher.next()) << "a pass is under way";
    for (const SampledToken& g : done(batcher, machine.run(*pass))) {
      EXPECT_FALSE(ended.contains(g.id)) << g.id;
      grown[g.id].push_back(g.token);
      EXPECT_EQ(g.logp, -0.5F * static_cast<float>(g.token)) << g.id;
      if (g.last) ended.insert(g.id);
    }
  }
  EXPECT_EQ(ended.size(), grown.size());
  return grown;
}

TEST(Batcher, SequencesGrowAsTheyDoAlone) {
  std::mt19937 random(5);
  const auto up_to = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  for (int round = 0; round < 200; ++round) {
    GenerationShape shape;
    shape.groups = up_to(3);
    const int together = up_to(3);
    shape.prompts = shape.groups * together;
    shape.slots = shape.prompts * up_to(3);
    shape.context = 8 + up_to(40);
    shape.chunk = up_to(9);
    shape.page = up_to(7);
    const std::int64_t whole = (shape.context + shape.page - 1) / shape.page;
    shape.pages = whole + up_to(static_cast<int>(whole * 2));
    const auto ends =
        std::vector<std::vector<std::int32_t>>{{}, {7}, {7, 31, 12}}[static_cast<std::size_t>(round % 3)];
    Batcher batcher(shape, ends, /*patience=*/0.5 * (up_to(5) - 1));
    Machine machine(shape);
    std::map<std::int32_t, std::vector<std::int32_t>> expected;
    for (std::int32_t id = 0; id < 12; ++id) {
      Prompt prompt{id, {}, 0};
      prompt.tokens.resize(static_cast<std::size_t>(up_to(static_cast<int>(shape.context) - 1)));
      for (std::int32_t& t : prompt.tokens) t = up_to(40);
      prompt.grow = up_to(static_cast<int>(shape.context - std::ssize(prompt.tokens)));
      expected[id] = alone(prompt, ends);
      batcher.add(std::move(prompt));
    }
    EXPECT_EQ(run(batcher, machine), expected) << "round " << round;
  }
}

// Four sequences of 1, 2, 3 and 4 tokens on two slots take six steps, not 2 + 4.
TEST(Batcher, ASlotIsTakenAgainAtOnce) {
  const GenerationShape shape{.groups = 1, .slots = 2, .chunk = 4, .context = 16, .page = 4, .pages = 8};
  Batcher batcher(shape);
  for (std::int32_t id = 0; id < 4; ++id) batcher.add({id, {1, 2, 3}, id + 3});
  std::vector<std::size_t> growing;
  Machine machine(shape);
  std::int64_t decodes = 0;
  while (const auto pass = batcher.next()) {
    if (!pass->prefill) ++decodes;
    growing.push_back(done(batcher, machine.run(*pass)).size());
  }
  EXPECT_EQ(machine.passes - decodes, 4) << "a chunk each";
  // There are 2 + 3 + 4 + 5 tokens beyond the first of each, and at most two in each pass: 7 passes or more.
  EXPECT_LE(decodes, 9);
}

// The passes of a generation, 'p' (prefill) and 'd' (decode). All four slots grow, and one after the other
// becomes free.
std::string passes_with(double patience) {
  const GenerationShape shape{
      .groups = 1, .slots = 4, .prompts = 2, .chunk = 4, .context = 16, .page = 4, .pages = 16};
  Batcher batcher(shape, {}, patience);
  for (std::int32_t id = 0; id < 8; ++id) batcher.add({id, {1, 2, 3}, id < 4 ? 4 + 3 * id : 2});
  Machine machine(shape);
  std::string order;
  while (const auto pass = batcher.next()) {
    order += pass->prefill ? 'p' : 'd';
    done(batcher, machine.run(*pass));
  }
  return order;
}

TEST(Batcher, PromptsOfOnePassAreTakenTogether) {
  EXPECT_EQ(passes_with(0).substr(0, 3), "pdp") << "two prompts a pass";
}

// An idle slot of four costs a quarter of a decode pass.
TEST(Batcher, PromptsWaitForOthersWhileThatCostsLessThanTheirPass) {
  const auto prefills = [](double patience) { return std::ranges::count(passes_with(patience), 'p'); };
  EXPECT_EQ(prefills(0), 6) << "two with two prompts, then one with each that comes into a free slot";
  EXPECT_LT(prefills(1), prefills(0));
  EXPECT_GE(prefills(1), 4) << "eight prompts, two a pass";
  // The first sequence ends in its third pass of decode; a prompt that waits for one pass waits for "d".
  EXPECT_EQ(passes_with(0).find("dp", 3) + 1, passes_with(0.25).find("dp", 3));
}

// A run that goes on from a checkpoint has a batcher of its own. Sums round by the rows of a pass, so it must
// fill them as the batcher that has already served others.
TEST(Batcher, AfterAPauseItFillsPassesAsANewOne) {
  const GenerationShape shape{
      .groups = 1, .slots = 4, .prompts = 2, .chunk = 4, .context = 16, .page = 4, .pages = 16};
  const auto rows_of = [&](Batcher& batcher, std::int32_t prompts) {
    Machine machine(shape);
    for (std::int32_t id = 0; id < prompts; ++id) batcher.add({id, {1, 2, 3}, 2 + id % 3});
    std::vector<std::vector<std::int32_t>> rows;
    while (const auto pass = batcher.next()) {
      rows.push_back(pass->requests.rows);
      done(batcher, machine.run(*pass));
    }
    return rows;
  };
  for (const double patience : {0.0, 0.5, 2.0})
    for (const std::int32_t before : {1, 3, 5, 6}) {
      Batcher used(shape, {}, patience), fresh(shape, {}, patience);
      rows_of(used, before);
      EXPECT_EQ(rows_of(used, 7), rows_of(fresh, 7)) << before << " before, patience " << patience;
    }
}

TEST(Batcher, HasRoomWhereASlotIsFreeAndNobodyWaitsForIt) {
  Batcher batcher({.groups = 1, .slots = 2, .chunk = 4, .context = 16, .page = 4, .pages = 8});
  EXPECT_TRUE(batcher.has_room());
  batcher.add({0, {1}, 1});
  batcher.add({1, {1}, 3});
  EXPECT_FALSE(batcher.has_room()) << "they wait";
  ASSERT_TRUE(batcher.next());
  EXPECT_FALSE(batcher.has_room()) << "both slots are taken";
  done(batcher, {5});  // the first ends
  EXPECT_TRUE(batcher.has_room());
  batcher.add({2, {1}, 1});
  EXPECT_FALSE(batcher.has_room());
}

TEST(Batcher, ALongPromptHoldsNobodyUp) {
  const GenerationShape shape{.groups = 1, .slots = 2, .chunk = 2, .context = 64, .page = 8, .pages = 16};
  Batcher batcher(shape);
  batcher.add({0, {1}, 20});
  batcher.add({1, std::vector<std::int32_t>(40, 3), 2});
  Machine machine(shape);
  std::string order;
  while (const auto pass = batcher.next()) {
    order += pass->prefill ? 'p' : 'd';
    done(batcher, machine.run(*pass));
  }
  EXPECT_EQ(order.find("ppp"), std::string::npos) << order;
}

TEST(Batcher, PromptsThatCannotGrowAreRefused) {
  Batcher batcher({.groups = 1, .slots = 1, .chunk = 4, .context = 8, .page = 4, .pages = 2});
  EXPECT_THROW(batcher.add({0, {}, 2}), Error);
  EXPECT_THROW(batcher.add({0, {1, 2, 3, 4, 5, 6}, 3}), Error);
  EXPECT_NO_THROW(batcher.add({0, {1, 2, 3, 4, 5, 6}, 2}));
}

TEST(Batcher, EndsWithTheEndOfTheText) {
  const GenerationShape shape{.groups = 1, .slots = 1, .chunk = 4, .context = 32, .page = 4, .pages = 8};
  const std::vector<std::int32_t> ends{9, 4};
  for (const std::int32_t end : ends) {
    Batcher batcher(shape, ends);
    batcher.add({3, {1}, 10});
    ASSERT_TRUE(batcher.next());
    EXPECT_THAT(done(batcher, {5}), ElementsAre(SampledToken{3, 5, false, -2.5F}));
    ASSERT_TRUE(batcher.next());
    EXPECT_THAT(done(batcher, {end}),
                ElementsAre(SampledToken{3, end, true, -0.5F * static_cast<float>(end)}));
    EXPECT_FALSE(batcher.next());
  }
}

// Rows that no sequence waits for may have no token: empty slots, and prompts that are not at their end.
TEST(Batcher, NoTokenIsAnErrorOfItsSequence) {
  Batcher batcher({.groups = 1, .slots = 2, .chunk = 2, .context = 8, .page = 4, .pages = 4});
  batcher.add({3, {1, 2, 1}, 4});
  ASSERT_TRUE(batcher.next());
  EXPECT_THAT(done(batcher, {kNoToken}), ElementsAre());
  ASSERT_TRUE(batcher.next());
  EXPECT_THAT(done(batcher, {5}), ElementsAre(SampledToken{3, 5, false, -2.5F}));
  ASSERT_TRUE(batcher.next());
  EXPECT_THAT(done(batcher, {6, kNoToken}), ElementsAre(SampledToken{3, 6, false, -3.0F}));
  ASSERT_TRUE(batcher.next());
  EXPECT_ERROR(done(batcher, {kNoToken, 6}), Code::kNotFinite, "prompt 3",
               "the logits of its token 3 are not finite, after a pass of decode");
}

}  // namespace
}  // namespace hyperrun::testing
