// The Error that something throws.
#pragma once

#include <gmock/gmock.h>

#include "runtime/base/error.h"

namespace hyperrun {

// kInternal, and the test fails, if `f` throws none.
template <class F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error was thrown";
  return {Code::kInternal, "no error was thrown"};
}

}  // namespace hyperrun

// `statement` throws an Error with this code, whose place and cause have these parts.
#define EXPECT_ERROR(statement, expected_code, place_part, cause_part)    \
  try {                                                                   \
    statement;                                                            \
    ADD_FAILURE() << #statement << " throws nothing";                     \
  } catch (const ::hyperrun::Error& e) {                                  \
    EXPECT_EQ(name(e.code()), name(expected_code)) << e.what();           \
    EXPECT_THAT(e.place(), ::testing::HasSubstr(place_part)) << e.what(); \
    EXPECT_THAT(e.cause(), ::testing::HasSubstr(cause_part)) << e.what(); \
  }
