#include "runtime/report/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <sstream>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr Nanos kSecond{1'000'000'000};

StepMetrics metrics(std::int64_t step) {
  StepMetrics m;
  m.step = step;
  m.loss = 3.41234;
  m.grad_norm = 0.8532;
  m.lr = 3e-4;
  m.tokens_per_second = 12345;
  m.step_time = kSecond;
  m.hbm_peak = Bytes(43'201'234);
  m.hbm_budget = kMiB * 64;
  m.exposed_communication = 0.12;
  return m;
}

// The output arrives here; the clock is the test's.
struct Screen {
  explicit Screen(bool live, std::int64_t steps = 100) {
    HR_CHECK(::pipe2(ends.data(), O_NONBLOCK) == 0);
    options.fd = ends[1];
    options.steps = steps;
    options.live = live;
    options.color = false;
    options.clock = [this] { return now; };
  }
  ~Screen() {
    for (int end : ends) ::close(end);
  }
  std::string read() {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;) text.append(part.data(), n);
    return text;
  }

  std::array<int, 2> ends{};
  Nanos now{};
  ProgressOptions options;
};

std::string without_colors(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      out += text[i];
    }
  }
  return out;
}

TEST(ProgressText, Full) {
  EXPECT_EQ(describe_progress(metrics(12), 400, {Nanos(62'000'000'000), {}}, 200, false),
            "step  12/400  loss 3.4123  grad-norm 0.853  lr 3.00e-04  12.3k tokens/s  HBM 41.2/64.0 MiB  "
            "exposed comm 12%  ETA 1:02");
}

TEST(ProgressText, NarrowKeepsWhatMattersMost) {
  auto at = [](int width) { return describe_progress(metrics(12), 400, {kSecond * 62, {}}, width, false); };
  EXPECT_EQ(at(79), " 12/400 loss 3.412 grad 0.85 lr 3.0e-04 12.3k t/s 41.2/64.0MiB comm12% ETA 1:02")
      << "all of it";
  EXPECT_EQ(at(40), " 12/400 loss 3.412 12.3kt/s ETA 1:02");
  EXPECT_EQ(at(12), " 12/400");
  EXPECT_EQ(at(6), " 12/40");
  for (int width = 0; width < 140; ++width) EXPECT_LE(at(width).size(), static_cast<std::size_t>(width));
}

// Typical runs, at the 79 columns that are used of 80.
TEST(ProgressText, EightyColumnsHoldAllOfALongRun) {
  auto m = metrics(12);
  m.hbm_peak = Bytes(std::int64_t{127} << 20), m.hbm_budget = Bytes(std::int64_t{128} << 20);
  m.exposed_communication = 1;
  for (const double loss : {0.123, 10.987})
    for (const double norm : {0.00123, 0.853, 123.4})
      for (const std::int64_t steps : {400, 9'999, 99'999})
        for (const std::int64_t seconds : {62, 36'000, 3'000'000}) {
          m.loss = loss, m.grad_norm = norm;
          const std::string text = describe_progress(m, steps, {kSecond * seconds, {}}, 79, false);
          for (const char* part : {"12/", "loss ", "grad ", "lr ", "t/s", "MiB", "comm100%", "ETA "})
            EXPECT_THAT(text, ::testing::HasSubstr(part)) << text;
        }
  m = metrics(12);
  EXPECT_EQ(describe_progress(m, 99'999, {kSecond * 36'000, {}}, 79, false),
            "   12/99999 loss 3.412 grad 0.85 lr 3e-4 12.3kt/s 41/64MiB comm12% ETA 10h00");
}

TEST(ProgressText, ColorsTakeNoColumns) {
  auto m = metrics(12);
  m.loss = NAN;
  std::string text = describe_progress(m, 400, {kSecond, {}}, 120, true);
  EXPECT_THAT(text, ::testing::HasSubstr("\x1b[1;31m  nan\x1b[0m"));
  EXPECT_EQ(without_colors(text), describe_progress(m, 400, {kSecond, {}}, 120, false));
}

TEST(ProgressText, LargeNumbersStayReadable) {
  auto m = metrics(1);
  m.loss = 1.5e9;
  m.tokens_per_second = 123456;
  m.hbm_budget = kGiB * 64;
  m.hbm_peak = kGiB * 63;
  std::string text = describe_progress(m, 1000000, {kSecond * 200000, {}}, 200, false);
  EXPECT_THAT(text, ::testing::HasSubstr("loss 1.5e+09 "));
  EXPECT_THAT(text, ::testing::HasSubstr(" 123k tokens/s"));
  EXPECT_THAT(text, ::testing::HasSubstr("HBM 63.0/64.0 GiB"));
  EXPECT_THAT(text, ::testing::EndsWith("ETA 2d07h"));
}

TEST(ProgressLine, PlainLinesAreFewAndWhole) {
  Screen screen(false, 20);
  ProgressLine line(screen.options);
  for (int step = 1; step <= 20; ++step, screen.now += kSecond) line.update(metrics(step));
  std::string text = screen.read();
  line.finish();
  EXPECT_EQ(screen.read(), "");  // the last step was there at once
  std::vector<int> steps;
  std::istringstream lines(text);
  for (std::string one; std::getline(lines, one);) {
    ASSERT_THAT(one, ::testing::StartsWith("step "));
    steps.push_back(std::stoi(one.substr(5)));
  }
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 6, 11, 16, 20));
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(ProgressLine, LiveLineIsRewrittenTenTimesASecond) {
  Screen screen(true, 1000);
  ProgressLine line(screen.options);
  for (int step = 1; step <= 100; ++step, screen.now += Nanos(10'000'000)) line.update(metrics(step));
  std::string text = screen.read();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 10);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  line.finish();
  text = screen.read();
  EXPECT_THAT(text, ::testing::HasSubstr(" 100/1000 loss"));  // the last step is never lost
  EXPECT_THAT(text, ::testing::EndsWith("\n"));
  line.finish();
  EXPECT_EQ(screen.read(), "");
}

TEST(ProgressLine, MessagesStandAboveTheLiveLine) {
  Screen screen(true);
  ProgressLine line(screen.options);
  line.print("before");
  EXPECT_EQ(screen.read(), "before\n");
  line.update(metrics(1));
  std::string drawn = screen.read();
  line.print("checkpoint");
  EXPECT_EQ(screen.read(), "\r\x1b[Kcheckpoint\n" + drawn);
}

TEST(ProgressLine, EstimateFollowsTheTimeBetweenSteps) {
  Screen screen(false, 100);
  screen.options.plain_interval = Nanos(0);
  ProgressLine line(screen.options);
  line.update(metrics(1));  // 1 s by its own account
  EXPECT_THAT(screen.read(), ::testing::HasSubstr("ETA 1:39"));
  for (int step = 2; step <= 40; ++step) {
    screen.now += kSecond * 3;
    line.update(metrics(step));
  }
  EXPECT_THAT(screen.read(), ::testing::EndsWith("ETA 3:00\n"));
}

// The time counts from the first step's beginning, which is a second before the clock is first read.
TEST(ProgressLine, TheLastStepSaysHowLongAllTook) {
  Screen screen(false, 3);
  screen.now = kSecond * 1000;
  ProgressLine line(screen.options);
  line.update(metrics(1));
  EXPECT_THAT(screen.read(), ::testing::EndsWith("ETA 0:02\n"));
  screen.now += kSecond * 90;
  line.update(metrics(2));
  screen.now += kSecond * 4;
  line.update(metrics(3));
  EXPECT_THAT(screen.read(), ::testing::EndsWith("  in 1:35\n"));
}

TEST(ProgressLine, OutputThatIsGoneIsNoError) {
  Screen screen(false);
  std::signal(SIGPIPE, SIG_IGN);
  ::close(screen.ends[0]);
  screen.ends[0] = -1;
  ProgressLine line(screen.options);
  line.update(metrics(1));
  line.finish();
}

// The other side of a real terminal.
struct Terminal {
  Terminal() : master(::posix_openpt(O_RDWR | O_NOCTTY)) {
    HR_CHECK(master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0);
    slave = ::open(::ptsname(master), O_RDWR | O_NOCTTY);
    HR_CHECK(slave >= 0);
  }
  ~Terminal() {
    ::close(slave);
    ::close(master);
  }
  std::string shown() {
    std::array<char, 4096> part{};
    auto n = ::read(master, part.data(), part.size());
    return {part.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
  }
  int master = -1, slave = -1;
};

TEST(ProgressLine, KnowsATerminalAndNoColor) {
  Terminal terminal;
  auto first_line = [&] {
    ProgressLine line({.fd = terminal.slave, .steps = 10});
    line.update(metrics(1));
    return terminal.shown();
  };
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_THAT(first_line(), ::testing::StartsWith("\r 1/10 \x1b[2mloss "));
  terminal.shown();  // the newline of its end
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_THAT(first_line(), ::testing::StartsWith("\r 1/10 loss "));
  terminal.shown();
  ::setenv("TERM", "dumb", 1);
  EXPECT_THAT(first_line(), ::testing::StartsWith("step "));
}

}  // namespace
}  // namespace hyperrun
