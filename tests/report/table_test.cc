#include "runtime/report/table.h"

#include <gtest/gtest.h>

namespace hyperrun {
namespace {

TEST(Table, AlignsTextLeftAndNumbersRight) {
  Table t({left("tensor"), right("bytes"), left("tier")});
  t.row({"embedding", "1,024", "hbm"});
  t.row({"head", "8", "pool"});
  t.rule();
  t.row({"", "1,032"});
  EXPECT_EQ(t.str("  "),
            "  tensor     bytes  tier\n"
            "  ---------  -----  ----\n"
            "  embedding  1,024  hbm\n"
            "  head           8  pool\n"
            "  ---------  -----  ----\n"
            "             1,032\n");
}

TEST(Table, CountsColumnsNotBytes) {
  Table t({left("host"), right("n")});
  t.row({"münchen", "1"});
  t.row({"abcdefg", "2"});
  EXPECT_EQ(t.str(),
            "host     n\n"
            "-------  -\n"
            "münchen  1\n"
            "abcdefg  2\n");
}

TEST(Table, RefusesMoreCellsThanColumns) {
  Table t({left("a")});
  EXPECT_THROW(t.row({"1", "2"}), std::exception);
}

TEST(WithSeparators, GroupsThousands) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(1000), "1,000");
  EXPECT_EQ(with_separators(-123456), "-123,456");
  EXPECT_EQ(with_separators(-1234567), "-1,234,567");
}

}  // namespace
}  // namespace hyperrun
