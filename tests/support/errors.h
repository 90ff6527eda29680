// Helpers for expected Errors.
#pragma once

#include <gmock/gmock.h>

#include "runtime/base/error.h"

namespace hyperrun {

// The Error that `f` throws. If it throws none, the test fails and the result is kInternal.
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

// Expects `statement` to throw an Error with this code, whose place and cause have these parts.
#define EXPECT_ERROR(statement, expected_code, place_part, cause_part)    \
  try {                                                                   \
    statement;                                                            \
    ADD_FAILURE() << #statement << " throws nothing";                     \
  } catch (const ::hyperrun::Error& e) {                                  \
    EXPECT_EQ(name(e.code()), name(expected_code)) << e.what();           \
    EXPECT_THAT(e.place(), ::testing::HasSubstr(place_part)) << e.what(); \
    EXPECT_THAT(e.cause(), ::testing::HasSubstr(cause_part)) << e.what(); \
  }
