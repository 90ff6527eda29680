#include "runtime/report/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/report/version.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

std::size_t files_in(const std::filesystem::path& path) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
}

TEST(RunDirectory, MakesItsParents) {
  TemporaryDirectory tmp;
  auto dir = RunDirectory::create(tmp / "runs/a/quickstart/");
  EXPECT_EQ(dir.path(), tmp / "runs/a/quickstart");
  EXPECT_TRUE(std::filesystem::is_directory(dir.path()));
  EXPECT_EQ(dir.notice(), "");
}

TEST(RunDirectory, TakesAnEmptyFolder) {
  TemporaryDirectory tmp;
  auto dir = RunDirectory::create(tmp.path());
  EXPECT_EQ(dir.path(), tmp.path());
}

TEST(RunDirectory, LeavesEarlierRunsAloneAndSaysSo) {
  TemporaryDirectory tmp;
  RunDirectory::create(tmp / "run").write("report.json", "1");
  RunDirectory::create(tmp / "run").write("report.json", "2");
  auto third = RunDirectory::create(tmp / "run");
  EXPECT_EQ(third.path(), tmp / "run-3");
  EXPECT_THAT(third.notice(), HasSubstr((tmp / "run-3").string()));
  EXPECT_EQ(content(tmp / "run/report.json"), "1");
  EXPECT_EQ(content(tmp / "run-2/report.json"), "2");
}

TEST(RunDirectory, NamesThePlaceItCannotWriteTo) {
  TemporaryDirectory tmp;
  put_file(tmp / "file", "x");
  for (auto path : {tmp / "file", tmp / "file/run", tmp / std::string(300, 'n')}) {
    auto error = error_of([&] { RunDirectory::create(path); });
    EXPECT_EQ(error.code(), Code::kUnwritable) << path;
    EXPECT_THAT(error.place(), HasSubstr(tmp.path().string()));
    EXPECT_THAT(error.remedy(), HasSubstr("run.directory"));
  }
  EXPECT_EQ(content(tmp / "file"), "x");
}

TEST(RunDirectory, WritesWholeFilesOnly) {
  TemporaryDirectory tmp;
  auto dir = RunDirectory::create(tmp / "run");
  dir.write("manifest.json", "old and longer");
  dir.write("manifest.json", "new");
  EXPECT_EQ(content(dir.file("manifest.json")), "new");
  EXPECT_EQ(files_in(dir.path()), 1u);  // no temporary file stays
}

TEST(RunDirectory, KeepsNothingOfAFileThatFailed) {
  TemporaryDirectory tmp;
  auto dir = RunDirectory::create(tmp / "run");
  std::filesystem::create_directory(dir.file("report.json"));  // a rename onto it fails
  EXPECT_EQ(error_of([&] { dir.write("report.json", "{}"); }).code(), Code::kUnwritable);
  EXPECT_EQ(files_in(dir.path()), 1u);
}

TEST(ExpandDirectory, FillsInJobAndTime) {
  ::setenv("TZ", "UTC", 1);
  Nanos time(1769903999LL * 1'000'000'000);
  EXPECT_EQ(expand_directory("runs/{job}-{time}", "llama", time), "runs/llama-20260131-235959");
  EXPECT_EQ(expand_directory("runs/{job}", "../a b/{time}", time), "runs/.._a_b__time_");
  EXPECT_EQ(expand_directory("plain", "llama", time), "plain");
}

TEST(Manifest, IsJsonWithEverythingNeededToRunAgain) {
  Manifest m;
  m.job = "quickstart";
  m.command_line = {"hyperrun", "a \"b\".textproto"};
  m.libraries = {{"openmpi", "4.1.4"}, {"openblas", "0.3.21"}};
  m.seed = 18446744073709551615u;
  m.hosts = {"alpha", "alpha", "b\xffta"};  // the last is no UTF-8
  m.start = Nanos(1769903999'123'456'789);
  auto running = nlohmann::json::parse(to_json(m));
  EXPECT_EQ(running["state"], "running");
  EXPECT_TRUE(running["end"].is_null());
  EXPECT_TRUE(running["exit_status"].is_null());

  m.end = m.start + Nanos(61'000'000'000);
  m.state = "failed";
  m.exit_status = 8;
  m.error = "device 3: error[device-lost]: killed";
  auto json = nlohmann::ordered_json::parse(to_json(m));
  EXPECT_EQ(json["start"], "2026-01-31T23:59:59.123Z");
  EXPECT_EQ(json["end"], "2026-02-01T00:01:00.123Z");
  EXPECT_EQ(json["seed"].get<std::uint64_t>(), m.seed);
  EXPECT_EQ(json["exit_status"], 8);
  EXPECT_EQ(json["error"], m.error);
  EXPECT_EQ(json["devices"], 3);
  EXPECT_EQ(json["command_line"][1], "a \"b\".textproto");
  EXPECT_EQ(json["hyperrun"]["version"], std::string(version()));
  EXPECT_EQ(json["libraries"].dump(), R"({"openmpi":"4.1.4","openblas":"0.3.21"})");
}

}  // namespace
}  // namespace hyperrun
