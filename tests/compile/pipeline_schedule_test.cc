// The list scheduler, compared with the times and the activations of the papers' schedules.
#include "runtime/compile/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/ir/pipeline.h"

namespace hyperrun::testing {
namespace {

using Schedule = std::vector<std::vector<TimedSlot>>;

PipelineSpec spec(const std::string& schedule, int devices, int chunks = 1, int layers_of_a_stage = 1) {
  PipelineSpec s;
  s.axis = "pp";
  s.schedule = schedule;
  s.chunks = chunks;
  s.stages = even_stages(devices, chunks, devices * chunks * layers_of_a_stage);
  return s;
}

std::int64_t makespan(const Schedule& schedule) {
  std::int64_t end = 0;
  for (const auto& device : schedule) end = std::max(end, device.back().end);
  return end;
}

// The most micro-batches whose activations a device holds at once.
int most_held(const std::vector<TimedSlot>& device) {
  int held = 0, most = 0;
  const bool split = std::any_of(device.begin(), device.end(),
                                 [](const TimedSlot& s) { return s.slot.kind == SlotKind::kWeightGradient; });
  for (const TimedSlot& s : device) {
    if (s.slot.kind == SlotKind::kForward) most = std::max(most, ++held);
    if (s.slot.kind == (split ? SlotKind::kWeightGradient : SlotKind::kBackward)) --held;
  }
  return most;
}

TEST(PipelineSchedule, OneStageAlternates) {
  const Schedule s = pipeline_schedule({}, 1, 2);
  std::vector<Slot> slots;
  for (const TimedSlot& t : s[0]) slots.push_back(t.slot);
  EXPECT_EQ(slots, (std::vector<Slot>{{SlotKind::kForward, 0, 0},
                                      {SlotKind::kBackward, 0, 0},
                                      {SlotKind::kForward, 0, 1},
                                      {SlotKind::kBackward, 0, 1}}));
}

// The idle time is p - 1 forward and backward passes, divided by the number of chunks (Huang et al. 2019,
// Narayanan et al. 2021), or p - 1 times F + B - W (Qi et al. 2024, ZB-H1). F = B = W = 1 here.
TEST(PipelineSchedule, BubblesAreThoseOfThePapers) {
  for (const int p : {2, 4, 8})
    for (const int m : {p, 2 * p, 4 * p}) {
      EXPECT_EQ(makespan(pipeline_schedule(spec("gpipe", p), p, m)), 3 * m + 3 * (p - 1)) << p << " " << m;
      EXPECT_EQ(makespan(pipeline_schedule(spec("1f1b", p), p, m)), 3 * m + 3 * (p - 1)) << p << " " << m;
      EXPECT_EQ(makespan(pipeline_schedule(spec("zero_bubble", p), p, m)), 3 * m + (p - 1)) << p << " " << m;
      for (const int v : {2, 3, 4})
        EXPECT_EQ(makespan(pipeline_schedule(spec("interleaved", p, v), p, m)), 3 * m * v + 3 * (p - 1))
            << p << " " << m << " " << v;
    }
}

TEST(PipelineSchedule, HoldsNoMoreThanThePapers) {
  const int p = 4, m = 16;
  for (int d = 0; d < p; ++d) {
    const auto device = static_cast<std::size_t>(d);
    EXPECT_EQ(most_held(pipeline_schedule(spec("gpipe", p), p, m)[device]), m);
    EXPECT_EQ(most_held(pipeline_schedule(spec("1f1b", p), p, m)[device]), p - d);
    EXPECT_LE(most_held(pipeline_schedule(spec("zero_bubble", p), p, m)[device]), p);
    EXPECT_EQ(most_held(pipeline_schedule(spec("interleaved", p, 2), p, m)[device]), 2 * (p - d - 1) + p + 1);
  }
}

int pairs_of(const std::vector<TimedSlot>& device) {
  return static_cast<int>(std::ranges::count_if(device, [](const TimedSlot& s) { return s.slot.beside; }));
}

TEST(PipelineSchedule, OneStageHasABackwardPassBesideTheNextForwardPass) {
  const Schedule s = pipeline_schedule({}, 1, 3, Turns::kPaired);
  std::vector<Slot> slots;
  for (const TimedSlot& t : s[0]) slots.push_back(t.slot);
  EXPECT_EQ(slots, (std::vector<Slot>{{SlotKind::kForward, 0, 0},
                                      {SlotKind::kForward, 0, 1},
                                      {SlotKind::kBackward, 0, 0, true},
                                      {SlotKind::kForward, 0, 2},
                                      {SlotKind::kBackward, 0, 1, true},
                                      {SlotKind::kBackward, 0, 2}}));
}

// A stage begins with single forward passes until the first micro-batch comes back. From then on all its
// backward passes are in pairs, except as many at the end. No stage waits in between: the idle time at both
// ends is the same as without pairs.
TEST(PipelineSchedule, PairsKeepStagesBusy) {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {2 * p, 3 * p, 8 * p}) {
      const Schedule s = pipeline_schedule(spec("1f1b", p), p, m, Turns::kPaired);
      for (int d = 0; d < p; ++d) {
        const int first = 2 * (p - 1 - d) + 1;
        EXPECT_EQ(pairs_of(s[static_cast<std::size_t>(d)]), m - first) << p << " " << m << " " << d;
        EXPECT_EQ(most_held(s[static_cast<std::size_t>(d)]), std::min(m, first + 1));
      }
      EXPECT_EQ(makespan(s), 3 * m + 3 * (p - 1)) << p << " " << m;
    }
}

using Key = std::tuple<SlotKind, int, int>;

// Checks a schedule of any stages: every slot occurs once, on its stage's device, after the slots it needs,
// one at a time or a backward pass beside a forward pass.
void expect_valid(const PipelineSpec& s, int devices, int micro_batches, Turns turns = Turns::kSingle) {
  const Schedule schedule = pipeline_schedule(s, devices, micro_batches, turns);
  const int stages = static_cast<int>(s.stages.size());
  const bool split = s.schedule == "zero_bubble";
  std::map<Key, TimedSlot> all;
  for (std::size_t d = 0; d < schedule.size(); ++d) {
    TimedSlot before;
    for (const TimedSlot& t : schedule[d]) {
      EXPECT_EQ(s.stages[static_cast<std::size_t>(t.slot.stage)].device, static_cast<int>(d));
      if (t.slot.beside) {
        EXPECT_EQ(turns, Turns::kPaired);
        EXPECT_EQ(before.slot.kind, SlotKind::kForward);
        EXPECT_EQ(std::pair(t.begin, t.end), std::pair(before.begin, before.end));
      } else {
        EXPECT_GE(t.begin, before.end);
      }
      before = t;
      EXPECT_TRUE(all.emplace(Key{t.slot.kind, t.slot.stage, t.slot.micro_batch}, t).second) << "twice";
    }
  }
  const SlotKind back = split ? SlotKind::kInputGradient : SlotKind::kBackward;
  EXPECT_EQ(all.size(), static_cast<std::size_t>(stages * micro_batches * (split ? 3 : 2)));
  for (int v = 0; v < stages; ++v)
    for (int m = 0; m < micro_batches; ++m) {
      const TimedSlot& f = all.at({SlotKind::kForward, v, m});
      const TimedSlot& b = all.at({back, v, m});
      EXPECT_GE(b.begin, f.end);
      if (v > 0) {
        EXPECT_GE(f.begin, all.at({SlotKind::kForward, v - 1, m}).end);
      }
      if (v + 1 < stages) {
        EXPECT_GE(b.begin, all.at({back, v + 1, m}).end);
      }
      if (split) {
        EXPECT_GE(all.at({SlotKind::kWeightGradient, v, m}).begin, b.end);
      }
    }
}

const std::vector<std::pair<std::string, Turns>> kSchedules = {
    {"gpipe", Turns::kSingle},       {"1f1b", Turns::kSingle}, {"interleaved", Turns::kSingle},
    {"zero_bubble", Turns::kSingle}, {"1f1b", Turns::kPaired}, {"interleaved", Turns::kPaired},
    {"zero_bubble", Turns::kPaired}};

TEST(PipelineSchedule, IsValidForAnyStages) {
  for (const auto& [name, turns] : kSchedules)
    for (const int m : {1, 2, 3, 5, 8, 13}) {
      for (const int p : {1, 2, 3, 4, 7})
        for (const int v : {1, 2, 3}) expect_valid(spec(name, p, v, 2), p, m, turns);
      // Uneven stages; the embedding alone on the last device; a V, there and back; one device with more
      // stages than others.
      for (const auto& stages :
           std::vector<std::vector<PipelineSpec::Stage>>{{{0, 5}, {1, 1}, {2, 3}},
                                                         {{2, 0}, {0, 2}, {1, 2}, {2, 2}},
                                                         {{0, 2}, {1, 2}, {2, 2}, {2, 2}, {1, 2}, {0, 2}},
                                                         {{1, 1}, {0, 1}, {1, 1}, {2, 1}, {1, 1}}}) {
        PipelineSpec s;
        s.schedule = name;
        s.stages = stages;
        expect_valid(s, 3, m, turns);
      }
    }
}

}  // namespace
}  // namespace hyperrun::testing
