#include "runtime/control/dispatcher.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace hyperrun::control {
namespace {

TEST(Dispatcher, CompletesInOrderWhenAllHaveReported) {
  Dispatcher d(2, 3);
  EXPECT_TRUE(d.idle());
  for (int i = 0; i < 3; ++i) d.issue({10 + i, 0, i, {}});
  EXPECT_FALSE(d.has_room());
  d.collect(0, {10, {{"x", 1}}, ""});
  d.collect(0, {11, {}, ""});
  EXPECT_FALSE(d.take_completed());
  d.collect(1, {10, {{"x", 2}}, ""});
  const auto completed = d.take_completed();
  ASSERT_TRUE(completed);
  EXPECT_EQ(completed->invocation.id, 10);
  EXPECT_EQ(completed->results[0].outputs.at("x"), 1);
  EXPECT_EQ(completed->results[1].outputs.at("x"), 2);
  EXPECT_FALSE(d.take_completed());
  EXPECT_TRUE(d.has_room());
  d.collect(1, {11, {}, ""});
  EXPECT_EQ(d.take_completed()->invocation.id, 11);
  EXPECT_FALSE(d.idle());
}

TEST(Dispatcher, RefusesReportsOutOfOrder) {
  Dispatcher d(2, 3);
  d.issue({10, 0, 0, {}});
  d.issue({11, 0, 1, {}});
  EXPECT_THROW(d.collect(0, {11, {}, ""}), Error);
  d.collect(0, {10, {}, ""});
  EXPECT_THROW(d.collect(0, {10, {}, ""}), Error);
  d.collect(0, {11, {}, ""});
  EXPECT_THROW(d.collect(0, {12, {}, ""}), Error);
}

}  // namespace
}  // namespace hyperrun::control
