// The beginning and end of work on virtual devices.
#include "runtime/tasks/virtual_devices.h"

#include <gtest/gtest.h>

#include <array>

namespace hyperrun::tasks {
namespace {

constexpr std::array<std::int32_t, 1> kFirst{0}, kSecond{1};
constexpr std::array<std::int32_t, 2> kBoth{0, 1};

void expect(const VirtualDevices::Done& done, std::int64_t id, std::int64_t begin, std::int64_t end) {
  EXPECT_EQ(done.id, id);
  EXPECT_EQ(done.begin, Nanos(begin)) << id;
  EXPECT_EQ(done.end, Nanos(end)) << id;
}

TEST(VirtualDevices, DoOneAfterTheOtherAndWaitForEachOther) {
  VirtualDevices devices(2);
  devices.give(7, kFirst, Nanos(5));
  devices.give(8, kSecond, Nanos(2));
  devices.give(9, kBoth, Nanos(4));
  devices.give(10, kSecond, Nanos(1));
  expect(devices.advance(), 8, 0, 2);
  devices.give(11, kFirst, Nanos(3));  // given at 2, behind 9
  expect(devices.advance(), 7, 0, 5);
  expect(devices.advance(), 9, 5, 9);
  expect(devices.advance(), 10, 9, 10);
  expect(devices.advance(), 11, 9, 12);
  EXPECT_TRUE(devices.idle());
  EXPECT_EQ(devices.now(), Nanos(12));
  EXPECT_EQ(devices.busy()[0], Nanos(12));
  EXPECT_EQ(devices.busy()[1], Nanos(7));
}

TEST(VirtualDevices, WhatTakesNoTimeEndsAtOnce) {
  VirtualDevices devices(2);
  devices.give(1, kBoth, Nanos(0));
  devices.give(2, kFirst, Nanos(0));
  expect(devices.advance(), 1, 0, 0);
  expect(devices.advance(), 2, 0, 0);
  EXPECT_TRUE(devices.idle());
}

}  // namespace
}  // namespace hyperrun::tasks
