// Boxes line by line, against a loop over their elements.
#include "runtime/device/box_lines.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace hyperrun::testing {
namespace {

using Dims = std::vector<std::int64_t>;

struct Lines {
  std::map<std::int64_t, std::int64_t> to_of;  // by offset there: offset here
  int count = 0;
};

Lines lines(const Dims& size, const Dims& from, const Dims& to) {
  Lines lines;
  each_line(std::span(size), std::span(from), std::span(to), [&](auto there, auto here, auto n) {
    ++lines.count;
    for (std::int64_t i = 0; i < n; ++i) EXPECT_TRUE(lines.to_of.emplace(there + i, here + i).second);
  });
  return lines;
}

std::map<std::int64_t, std::int64_t> elements(const Dims& size, const Dims& from, const Dims& to) {
  std::map<std::int64_t, std::int64_t> all;
  for (std::int64_t a = 0; a < size[0]; ++a)
    for (std::int64_t b = 0; b < size[1]; ++b)
      for (std::int64_t c = 0; c < size[2]; ++c)
        all[a * from[0] + b * from[1] + c * from[2]] = a * to[0] + b * to[1] + c * to[2];
  return all;
}

TEST(EachLine, CoversABoxInAsFewLinesAsThereAre) {
  struct Case {
    Dims size, from, to;
    int lines;
  };
  for (const Case& c :
       {Case{{2, 3, 4}, {12, 4, 1}, {12, 4, 1}, 1},   // the same whole
        Case{{2, 3, 4}, {40, 8, 1}, {12, 4, 1}, 6},   // columns of a wider array
        Case{{2, 3, 4}, {24, 4, 1}, {12, 4, 1}, 2},   // rows of a longer one
        Case{{1, 3, 4}, {99, 4, 1}, {77, 4, 1}, 1},   // one of a dimension: its stride says nothing
        Case{{2, 3, 1}, {3, 1, 1}, {6, 2, 1}, 6}}) {  // apart here
    const Lines found = lines(c.size, c.from, c.to);
    EXPECT_EQ(found.to_of, elements(c.size, c.from, c.to));
    EXPECT_EQ(found.count, c.lines);
  }
}

}  // namespace
}  // namespace hyperrun::testing
