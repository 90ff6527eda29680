#include "runtime/tasks/dispatcher.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace hyperrun::tasks {
namespace {

// The results' ids, and the ranks that have each invocation.
std::vector<std::int64_t> ids(const Dispatcher::Completed& completed) {
  std::vector<std::int64_t> ids;
  for (const InvocationDone& done : completed.results) ids.push_back(done.id);
  return ids;
}

Invocation of_group(std::int64_t id, GroupId group) {
  Invocation invocation;
  invocation.id = id;
  invocation.group = group;
  return invocation;
}

TEST(Dispatcher, CompletesInOrderWhenAllHaveReported) {
  const DeviceGroups groups(2);
  Dispatcher d(groups, 3);
  EXPECT_TRUE(d.idle());
  for (int i = 0; i < 3; ++i) d.issue({10 + i, 0, i, {}});
  EXPECT_FALSE(d.has_room(kEveryDevice));
  d.collect(0, {10, {{"x", 1}}, ""});
  d.collect(0, {11, {}, ""});
  EXPECT_FALSE(d.take_completed());
  d.collect(1, {10, {{"x", 2}}, ""});
  const Dispatcher::Completed* const completed = d.take_completed();
  ASSERT_NE(completed, nullptr);
  EXPECT_EQ(completed->invocation.id, 10);
  EXPECT_EQ(completed->results[0].outputs.at("x"), 1);
  EXPECT_EQ(completed->results[1].outputs.at("x"), 2);
  EXPECT_FALSE(d.take_completed());
  EXPECT_TRUE(d.has_room(kEveryDevice));
  d.collect(1, {11, {}, ""});
  EXPECT_EQ(d.take_completed()->invocation.id, 11);
  EXPECT_FALSE(d.idle());
}

TEST(Dispatcher, RefusesReportsOutOfOrder) {
  const DeviceGroups groups(2);
  Dispatcher d(groups, 3);
  d.issue({10, 0, 0, {}});
  d.issue({11, 0, 1, {}});
  EXPECT_THROW(d.collect(0, {11, {}, ""}), Error);
  d.collect(0, {10, {}, ""});
  EXPECT_THROW(d.collect(0, {10, {}, ""}), Error);
  d.collect(0, {11, {}, ""});
  EXPECT_THROW(d.collect(0, {12, {}, ""}), Error);
}

// Of groups {1, 2} and {0} the second is faster: neither waits for the other.
TEST(Dispatcher, DisjointGroupsDoNotWaitForEachOther) {
  DeviceGroups groups(3);
  const GroupId pair = groups.add({2, 1}), single = groups.add({0});
  Dispatcher d(groups, 2);
  d.issue(of_group(1, pair));
  d.issue(of_group(2, single));
  d.issue(of_group(3, pair));
  EXPECT_FALSE(d.has_room(pair));
  EXPECT_FALSE(d.has_room(kEveryDevice));
  EXPECT_TRUE(d.has_room(single));
  d.collect(0, {2, {{"x", 7}}, ""});
  const Dispatcher::Completed* completed = d.take_completed();
  ASSERT_NE(completed, nullptr);
  EXPECT_EQ(completed->invocation.id, 2);
  ASSERT_EQ(completed->results.size(), 1u);
  EXPECT_EQ(completed->results[0].outputs.at("x"), 7);
  EXPECT_EQ(d.awaited(0), nullptr);
  d.collect(2, {1, {{"x", 2}}, ""});
  d.collect(2, {3, {}, ""});
  EXPECT_EQ(d.awaited(1)->id, 1);
  EXPECT_EQ(d.take_completed(), nullptr);
  EXPECT_FALSE(d.has_room(pair));  // device 1 still has two
  d.collect(1, {1, {{"x", 1}}, ""});
  EXPECT_TRUE(d.has_room(pair));
  completed = d.take_completed();
  ASSERT_NE(completed, nullptr);
  EXPECT_EQ(completed->results.at(0).outputs.at("x"), 1);  // of device 1, the first of its group
  EXPECT_EQ(completed->results.at(1).outputs.at("x"), 2);
  EXPECT_FALSE(d.idle());
  d.collect(1, {3, {}, ""});
  EXPECT_EQ(ids(*d.take_completed()), (std::vector<std::int64_t>{3, 3}));
  EXPECT_TRUE(d.idle());
}

TEST(Dispatcher, ADeviceReportsWhatItWasGivenByWhateverGroup) {
  DeviceGroups groups(2);
  const GroupId first = groups.add({0});
  Dispatcher d(groups, 4);
  d.issue(of_group(1, kEveryDevice));
  d.issue(of_group(2, first));
  d.issue(of_group(3, kEveryDevice));
  EXPECT_THROW(d.collect(0, {2, {}, ""}), Error);
  EXPECT_THROW(d.collect(1, {2, {}, ""}), Error);
  d.collect(1, {1, {}, ""});
  d.collect(1, {3, {}, ""});
  EXPECT_THROW(d.collect(1, {3, {}, ""}), Error);
  for (const std::int64_t id : {1, 2, 3}) d.collect(0, {id, {}, ""});
  for (const std::int64_t id : {1, 2, 3}) EXPECT_EQ(d.take_completed()->invocation.id, id);
}

TEST(DeviceGroups, RefusesWhatIsNoSetOfDevices) {
  DeviceGroups groups(4);
  EXPECT_THROW(groups.add({}), Error);
  EXPECT_THROW(groups.add({3, 4}), Error);
  EXPECT_THROW(groups.add({-1}), Error);
  EXPECT_THROW(groups.add({2, 1, 2}), Error);
  EXPECT_EQ(groups.size(), 1);
  const GroupId odd = groups.add({3, 1}), one = groups.add({3});
  EXPECT_TRUE(groups.contains(odd, one));
  EXPECT_FALSE(groups.contains(one, odd));
  EXPECT_TRUE(groups.contains(kEveryDevice, odd));
  EXPECT_EQ(std::vector(groups.of_rank(3).begin(), groups.of_rank(3).end()),
            (std::vector<GroupId>{kEveryDevice, odd, one}));
}

}  // namespace
}  // namespace hyperrun::tasks
