#include "runtime/inference/requests_io.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"

namespace hyperrun::testing {
namespace {

TEST(RequestsIo, BringsBackWhatWasSent) {
  const Requests r{2, 5, {1, 2, 3, 4, 5, 6}, {0, 7, 2, 1, 0, 1, 9, 2, 3, 4, 2, 0, 0, 0, 0}};
  EXPECT_EQ(requests_from_bytes(to_bytes(r)), r);
}

TEST(RequestsIo, RefusesWhatIsTorn) {
  const std::string whole = to_bytes({2, 4, {1, 2, 3, 4}, {0, 0, 2, 0, 1, 0, 2, 1}});
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_THROW(requests_from_bytes(whole.substr(0, n)), Error) << n;
  EXPECT_NO_THROW(requests_from_bytes(whole));
}

}  // namespace
}  // namespace hyperrun::testing
