#include "runtime/process/mpirun_talk.h"

#include <gtest/gtest.h>

namespace hyperrun::process {
namespace {

const std::string kRule(74, '-');

TEST(MpirunTalk, FramedMessagesAreKeptAndTheRestIsPassedOn) {
  MpirunTalk talk;
  const std::string all = "one\n" + kRule + "\nmpirun says\n\n  why\n" + kRule + "\n-- two --\n";
  EXPECT_EQ(talk.without(all), "one\n-- two --\n");
  EXPECT_EQ(talk.messages(), "mpirun says\n  why\n");
  EXPECT_EQ(talk.rest(), "");
}

// Output comes in pieces of any size.
TEST(MpirunTalk, InPieces) {
  const std::string all = "one\n" + kRule + "\nwhy\n" + kRule + "\ntwo\nno end";
  for (std::size_t size = 1; size < 80; ++size) {
    MpirunTalk talk;
    std::string passed;
    for (std::size_t at = 0; at < all.size(); at += size) passed += talk.without(all.substr(at, size));
    EXPECT_EQ(passed, "one\ntwo\n") << size;
    EXPECT_EQ(talk.rest(), "no end") << size;
    EXPECT_EQ(talk.messages(), "why\n") << size;
  }
}

TEST(MpirunTalk, EachMessageOnceWithoutEmptyTalk) {
  MpirunTalk talk;
  const auto framed = [](const std::string& text) { return kRule + "\n" + text + kRule + "\n"; };
  std::string advice;
  for (int i = 1; i <= 20; ++i) advice += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(
      talk.without(framed("bad\n") + framed("bad\n") + framed("[1] FORCE-TERMINATE AT (null):1\n") +
                   "[node:1] 2 more processes have sent help message help-x.txt / y\n" + framed(advice)),
      "");
  EXPECT_EQ(talk.messages(), "bad\nline 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n");
}

TEST(MpirunTalk, GeneralAdviceIsLeftOut) {
  MpirunTalk talk;
  const std::string first = "ORTE was unable to reliably start one or more daemons.\n";
  talk.without(kRule + "\n" + first + "This usually is caused by:\n\n* not finding\n" + kRule + "\n");
  EXPECT_EQ(talk.messages(), first);
}

TEST(MpirunTalk, AFrameThatHasNoEnd) {
  MpirunTalk talk;
  EXPECT_EQ(talk.without(kRule + "\nkilled while it spoke\n"), "");
  EXPECT_EQ(talk.rest(), "");
  EXPECT_EQ(talk.messages(), "killed while it spoke\n");
}

}  // namespace
}  // namespace hyperrun::process
