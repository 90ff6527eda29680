#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "runtime/reinforce/experience.h"
#include "runtime/reinforce/reward.h"
#include "runtime/reinforce/tasks.h"
#include "tests/support/errors.h"

namespace hyperrun::testing {
namespace {

TEST(Tasks, AreReadALineEach) {
  const auto tasks = parse_tasks(
      "{\"prompt\": \"1+2=\", \"answer\": \"3\"}\r\n\n{\"answer\":\"a\\nb\",\"prompt\":\"x\",\"n\":1}\n",
      "t");
  EXPECT_EQ(tasks, (std::vector<Task>{{"1+2=", "3"}, {"x", "a\nb"}}));
}

TEST(Tasks, OfAnotherKindAreRefusedWithTheirLine) {
  EXPECT_ERROR(parse_tasks("\n{\"prompt\": \"a\"}\n", "t.jsonl"), Code::kBadCorpus, "t.jsonl:2", "answer");
  EXPECT_ERROR(parse_tasks("{\"prompt\": \"\", \"answer\": \"b\"}", "t.jsonl"), Code::kBadCorpus, "t.jsonl:1",
               "empty");
  EXPECT_ERROR(parse_tasks("{\"prompt\": 3, \"answer\": \"b\"}", "t.jsonl"), Code::kBadCorpus, "t.jsonl:1",
               "prompt");
  EXPECT_ERROR(parse_tasks("[1]", "t.jsonl"), Code::kBadCorpus, "t.jsonl:1", "no object");
  EXPECT_ERROR(parse_tasks("{\"prompt\": ", "t.jsonl"), Code::kBadCorpus, "t.jsonl:1", "no object");
  EXPECT_ERROR(parse_tasks("\n\n", "t.jsonl"), Code::kBadCorpus, "t.jsonl", "no task");
  EXPECT_ERROR(read_tasks("/nowhere/t.jsonl"), Code::kMissingFile, "/nowhere/t.jsonl", "");
}

std::vector<Task> sums() {
  std::vector<Task> tasks;
  for (int a = 0; a < 30; ++a)
    for (int b = 0; b < 30; ++b)
      tasks.push_back({std::to_string(a) + "+" + std::to_string(b) + "=", std::to_string(a + b)});
  return tasks;
}

TEST(Tasks, AreHeldBackByTheirPrompt) {
  const TaskSplit split = split_tasks(sums(), 10, "t");
  EXPECT_EQ(split.train.size() + split.held_back.size(), 900U);
  // 900 independent draws with probability 1 in 10, within five standard deviations.
  EXPECT_NEAR(static_cast<double>(split.held_back.size()), 90, 5 * std::sqrt(900 * 0.1 * 0.9));
  std::vector<Task> more = sums();
  more.insert(more.begin(), {"new", "1"});
  more.push_back(split.held_back.front());
  for (const Task& task : split_tasks(more, 10, "t").train)
    for (const Task& back : split.held_back) EXPECT_NE(task.prompt, back.prompt);
  EXPECT_EQ(split_tasks(sums(), 0, "t").train.size(), 900U);
  EXPECT_ERROR(split_tasks({{"a", "b"}}, 1000, "t"), Code::kBadCorpus, "t", "held back");
}

TEST(Tasks, OfAnEpochAreAllOfThemInAnOrderOfItsOwn) {
  std::vector<std::vector<std::size_t>> epochs(3);
  for (std::int64_t step = 0; step < 21; ++step)  // 7 x 3 = 21 draws are an epoch of 7 steps
    for (const std::size_t t : tasks_of_step(21, 3, step, 5))
      epochs[static_cast<std::size_t>(step) / 7].push_back(t);
  for (const auto& epoch : epochs) EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 21U);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(tasks_of_step(21, 3, 0, 5), tasks_of_step(21, 3, 0, 6));
  EXPECT_EQ(tasks_of_step(2, 5, 1, 1).size(), 5U);  // more than there are
}

TEST(Reward, IsOneForTheAnswer) {
  const Task task{"12+7=", "19"};
  for (const char* rule : {"answer", "arithmetic"}) {
    EXPECT_EQ(reward(rule, task, "19"), 1);
    EXPECT_EQ(reward(rule, task, " 19\n"), 1);
    EXPECT_EQ(reward(rule, task, ""), 0);
    EXPECT_EQ(reward(rule, task, "nineteen"), 0);
    EXPECT_EQ(reward(rule, task, "19 "), 1);
    EXPECT_EQ(reward(rule, task, "19x"), 0);
  }
  EXPECT_EQ(reward("answer", task, "18"), 0);
  EXPECT_EQ(reward("arithmetic", task, "18"), 0.5);
  EXPECT_EQ(reward("arithmetic", task, "22"), 0.25);
  EXPECT_EQ(reward("arithmetic", {"", "-3"}, "-4"), 0.5);
  EXPECT_EQ(reward("arithmetic", task, "99999999999999999999"), 0);  // no number that fits
  EXPECT_GE(reward("arithmetic", {"", "9223372036854775807"}, "-9223372036854775808"), 0);
}

TEST(Advantages, AreThoseOfEachGroup) {
  // The groups have mean 0.5 and deviation 0.5; equal rewards; mean 1/3 and deviation sqrt(2)/3.
  EXPECT_EQ(advantages({1, 0}, 2), (std::vector<float>{1, -1}));
  EXPECT_EQ(advantages({0.3, 0.3, 0.3}, 3), (std::vector<float>{0, 0, 0}));
  const auto a = advantages({1, 0, 0, 0, 0, 1}, 3);
  const float up = static_cast<float>((2.0 / 3) / (std::sqrt(2.0) / 3)),
              down = static_cast<float>(-1 / std::sqrt(2.0));
  const std::vector<float> expected{up, down, down, down, down, up};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(a[i], expected[i]);
}

TEST(Experience, PredictsTheTokensOfTheCompletion) {
  const std::vector<Completion> two{{{7, 8}, {1, 2, 3}, {-0.1F, -0.2F, -0.3F}}, {{9}, {4}, {-0.4F}}};
  const Samples s = experience_of(two, 4, {2, -3}, {});
  EXPECT_EQ(s.tokens, 4);
  EXPECT_EQ(s.ids, (std::vector<std::int32_t>{7, 8, 1, 2, 9, 4, 0, 0}));
  EXPECT_EQ(s.targets, (std::vector<std::int32_t>{-1, 1, 2, 3, 4, -1, -1, -1}));
  const float third = 1.0F / 6;
  EXPECT_EQ(s.weight, (std::vector<float>{0, third, third, third, 0.5F, 0, 0, 0}));
  EXPECT_EQ(s.advantage, (std::vector<float>{0, 2, 2, 2, -3, 0, 0, 0}));
  EXPECT_EQ(s.behaviour, (std::vector<float>{0, -0.1F, -0.2F, -0.3F, -0.4F, 0, 0, 0}));
  EXPECT_EQ(s.reference, s.behaviour);  // without scores of a reference
  std::vector<float> scores(8);
  std::iota(scores.begin(), scores.end(), 1.0F);
  EXPECT_EQ(experience_of(two, 4, {2, -3}, scores).reference, scores);
  EXPECT_ERROR(samples_of({{{1, 2}, {3, 4, 5, 6}, {}}}, 4), Code::kInternal, "", "longer");
}

}  // namespace
}  // namespace hyperrun::testing
