// Profiles of supernodes: built-in ones, files of the user, and their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/error.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "runtime/spec/profile_figures.h"
#include "runtime/spec/profile_reader.h"
#include "runtime/spec/profile_writer.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLevels = R"(
levels {
  name: "node" devices: 8 addressable: true
  latency { value: "1 us" evidence: "measured" source: "s" }
  bandwidth { value: "100 GB/s" evidence: "data sheet" source: "s" }
}
levels {
  name: "cluster"
  latency { value: "5 us" evidence: "placeholder" source: "s" }
  bandwidth { value: "25 GB/s" evidence: "data sheet" source: "s" }
}
)";
constexpr const char* kDevice = R"(name: "mine"
about: "a machine"
device {
  cube_float32 { value: "10 TFLOP/s" evidence: "data sheet" source: "s" }
  cube_bfloat16 { value: "100 TFLOP/s" evidence: "data sheet" source: "s" }
  vector { value: "1 TFLOP/s" evidence: "data sheet" source: "s" }
  hbm { value: "16 GiB" evidence: "data sheet" source: "s" }
  hbm_bandwidth { value: "1 TB/s" evidence: "data sheet" source: "s" }
  launch_cube { value: "5 us" evidence: "measured" source: "s" }
  launch_vector { value: "2 us" evidence: "measured" source: "s" }
  launch_comm { value: "10 us" evidence: "measured" source: "table 3" }
}
)";
constexpr const char* kJob = R"(
model { layers: 1 hidden: 64 heads: 4 vocab: 300 sequence: 32 }
data { corpus: "c.txt" }
training { steps: 1 batch: 1 lr: 0.1 }
)";

Error refused(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was refused";
  return Error(Code::kInternal, "");
}

TEST(Profile, ThoseThatAreBuiltInSayWhereTheirNumbersAreFrom) {
  std::vector<std::string> names;
  for (const BuiltInProfile& p : built_in_profiles()) {
    const Machine m = parse_profile(p.text, std::string(p.name));
    names.push_back(m.name);
    EXPECT_EQ(m.name, p.name);
    EXPECT_FALSE(m.about.empty());
    EXPECT_GT(m.levels.size(), 1u);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"a100", "a100_megatron", "atlas_a2", "b200", "h100", "matrix384"}));
  const Machine m = load_profile("matrix384", "job.textproto");
  EXPECT_EQ(m.cube.bf16, (Figure{353.9e12, Evidence::kDataSheet, "Ascend 910C, a die"}));
  EXPECT_EQ(m.levels[2].devices, 768);
  EXPECT_EQ(m.devices_of_a_host(), 768) << "all of a supernode is addressable";
}

TEST(Profile, IsReadWithAllItSays) {
  const Machine m = parse_profile(std::string(kDevice) + kLevels, "p.textproto");
  EXPECT_EQ(m.cube.f32.value, 10e12);
  EXPECT_EQ(m.hbm.value, 16 * 0x1p30);
  EXPECT_EQ(m.launch_comm, (Figure{10e3, Evidence::kMeasured, "table 3"}));
  EXPECT_EQ(m.products, Efficiency{}) << "not given: the peak is reached";
  EXPECT_EQ(m.levels[0].bandwidth.value, 100e9);
  EXPECT_EQ(m.levels[1].latency.evidence, Evidence::kPlaceholder);
  EXPECT_EQ(m.level_between(0, 7), 0);
  EXPECT_EQ(m.level_between(7, 8), 1);
}

TEST(Profile, WrittenAndReadIsTheSame) {
  for (const BuiltInProfile& p : built_in_profiles()) {
    const Machine m = parse_profile(p.text, std::string(p.name));
    EXPECT_EQ(parse_profile(to_textproto(m), "written"), m) << to_textproto(m);
  }
}

TEST(Profile, IsWrittenAFigureALine) {
  Machine m = parse_profile(std::string(kDevice) + kLevels, "p.textproto");
  EXPECT_THAT(to_textproto(m), HasSubstr("\n  launch_comm { value: \"10 us\" evidence: \"measured\" source: "
                                         "\"table 3\" }\n"));
  EXPECT_EQ(to_textproto(m).find("products"), std::string::npos) << "left out, as what is not given is";
  m.about = "a \"quoted\" \\ line\nand another, naïve";
  m.products = {{0.1 + 0.2, Evidence::kMeasured, "a third of it"}, {1.0 / 3, Evidence::kMeasured, "m"}};
  m.cube.f32.value = 48.2345678901234e9;
  EXPECT_EQ(parse_profile(to_textproto(m), "written"), m) << to_textproto(m);
}

TEST(Profile, WhatAJobGaveIsWrittenAsAPlaceholder) {
  Machine m = parse_profile(std::string(kDevice) + kLevels, "p.textproto");
  m.vector = Figure{2e12};
  const Machine read = parse_profile(to_textproto(m), "written");
  EXPECT_EQ(read.vector, (Figure{2e12, Evidence::kPlaceholder, "given by the job"}));
}

struct Bad {
  const char *what, *by;
  Code code;
  const char *place, *cause;
};

TEST(Profile, WhatIsWrongIsToldWithItsPlace) {
  const std::string good = std::string(kDevice) + kLevels;
  for (
      const Bad& bad : std::vector<Bad>{
          {"vector {", "vektor {", Code::kUnknownField, "p.textproto:6:3", "no field \"vektor\""},
          {"\"1 TFLOP/s\"", "\"1 TB\"", Code::kBadValue, "p.textproto:6:12", "cannot be \"1 TB\""},
          {"\"1 TFLOP/s\"", "\"0 FLOP/s\"", Code::kBadValue, "p.textproto:6:12", "cannot be \"0 FLOP/s\""},
          {"\"1 TB/s\" evidence: \"data sheet\"", "\"1 TB/s\" evidence: \"rumour\"", Code::kBadValue,
           "p.textproto:8:35", "\"rumour\" is unknown"},
          {"source: \"table 3\"", "", Code::kMissingField, "p.textproto:11:3", "has no \"source\""},
          {"\"1 TFLOP/s\"", "\"1e300 FLOP/s\"", Code::kBadValue, "p.textproto:6:12", "cannot be \"1e300"},
          {"source: \"table 3\"", "sauce: \"table 3\"", Code::kUnknownField, "p.textproto:11:53",
           "a figure has no field \"sauce\""},
          {"value: \"10 us\"", "", Code::kMissingField, "p.textproto:11:3",
           "\"launch_comm\" has no \"value\""},
          {"about: \"a machine\"", "", Code::kMissingField, "p.textproto", "the profile has no \"about\""},
          {"launch_cube {",
           "tiles { cores { value: \"1.5\" evidence: \"measured\" source: \"s\" } } launch_cube {",
           Code::kBadValue, "p.textproto:9:19", "\"cores\" cannot be \"1.5\""},
          {"value: \"10 us\"", "value: 10", Code::kBadValue, "p.textproto:11:24", "\"value\" cannot be 10"},
          {"\"cluster\"", "\"node\"", Code::kBadValue, "p.textproto:20:3", "two levels are called \"node\""},
          {"\"mine\"", "\"\\033[31m\"", Code::kBadValue, "p.textproto:1:1", "no name"},
          {"devices: 8", "devices: 1", Code::kBadValue, "p.textproto:15:16", "cannot have 1 devices"},
          {"devices: 8", "", Code::kMissingField, "p.textproto:14:1", "level \"node\" has no \"devices\""},
          {"name: \"cluster\"", "name: \"cluster\" mesh: true", Code::kBadValue, "p.textproto:20:19", "mesh"},
          {"name: \"cluster\"", "name: \"cluster\" devices: 16", Code::kBadValue, "p.textproto:20:19",
           "any number of devices"},
          {kLevels, "", Code::kMissingField, "p.textproto", "no \"levels\""},
          {"\"5 us\" evidence: \"placeholder\" source: \"s\"",
           "\"5 us\" evidence: \"placeholder\" source: \"s\" low: \"1 us\"", Code::kMissingField,
           "p.textproto:21:3", "\"cluster.latency\" has a part of a range, but no high, range_source"},
          {"source: \"table 3\"", "source: \"table 3\" low: \"9 us\" high: \"11 us\" range_source: \"s\"",
           Code::kBadValue, "p.textproto:11:3", "\"device.launch_comm\" is no guess (measured)"},
          {"\"5 us\" evidence: \"placeholder\" source: \"s\"",
           "\"5 us\" evidence: \"placeholder\" source: \"s\" low: \"6 us\" high: \"7 us\" range_source: "
           "\"s\"",
           Code::kBadValue, "p.textproto:21:3", "is 5 us, which does not lie from 6 us to 7 us"},
          {"\"5 us\" evidence: \"placeholder\" source: \"s\"",
           "\"5 us\" evidence: \"placeholder\" source: \"s\" low: \"1 us\" high: \"2 s\" range_source: \"s\"",
           Code::kBadValue, "p.textproto:21:75", "cannot be \"2 s\""},
          {"hbm_bandwidth {",
           "reserve { value: \"16 GiB\" evidence: \"measured\" source: \"s\" } hbm_bandwidth {",
           Code::kBadValue, "p.textproto:8:3", "leaves nothing of the HBM"},
      }) {
    std::string text = good;
    text.replace(text.find(bad.what), std::string(bad.what).size(), bad.by);
    const Error e = refused([&] { parse_profile(text, "p.textproto"); });
    EXPECT_EQ(e.code(), bad.code) << bad.by;
    EXPECT_EQ(e.place(), bad.place) << bad.by;
    EXPECT_THAT(e.cause(), HasSubstr(bad.cause));
    EXPECT_FALSE(e.legal().empty()) << bad.by;
  }
}

TEST(Profile, EveryGuessThatIsBuiltInHasARangeWithItsSource) {
  for (const BuiltInProfile& p : built_in_profiles()) {
    Machine m = parse_profile(p.text, std::string(p.name));
    EXPECT_GT(m.reserve.value, 0) << p.name;
    int guesses = 0;
    for (const FigurePath& at : figures_of(m)) {
      const Figure& f = at.in(m);
      if (f.evidence != Evidence::kPlaceholder) continue;
      ++guesses;
      EXPECT_TRUE(f.has_range()) << p.name << ": " << at.path;
      EXPECT_LT(f.low, f.high) << p.name << ": " << at.path;
      EXPECT_GT(f.range_source.size(), 10u) << p.name << ": " << at.path;
    }
    std::size_t written = 0;  // placeholders in the text of the file
    for (std::size_t at = p.text.find("\"placeholder\""); at != std::string_view::npos;
         at = p.text.find("\"placeholder\"", at + 1))
      ++written;
    EXPECT_EQ(static_cast<std::size_t>(guesses), written) << p.name;
  }
}

TEST(Profile, ItsFiguresAreListedUnderTheirPathsAndCanBeChanged) {
  Machine m = parse_profile(std::string(kDevice) + kLevels, "p.textproto");
  const std::vector<FigurePath> figures = figures_of(m);
  ASSERT_EQ(figures.size(), 12u) << "eight of the device, two of each level";
  EXPECT_EQ(figures.front().path, "device.cube_float32");
  EXPECT_EQ(figures.back().path, "levels[1].bandwidth");
  EXPECT_EQ(figures.back().name, "cluster.bandwidth");
  EXPECT_EQ(figures.back().describe(25e9), "25 GB/s");
  Machine other = m;
  figures.back().in(other).value = 50e9;
  EXPECT_EQ(other.levels[1].bandwidth.value, 50e9);
  EXPECT_EQ(m.levels[1].bandwidth.value, 25e9);
  other.levels[1].bandwidth.value = 25e9;
  EXPECT_EQ(other, m) << "nothing else was changed";
}

TEST(Profile, ARangeAndAReserveAreReadAndWritten) {
  std::string text = std::string(kDevice) + kLevels;
  const std::string latency = R"("5 us" evidence: "placeholder" source: "s")", hbm = "hbm_bandwidth {";
  text.replace(text.find(latency), latency.size(),
               latency + R"( low: "2 us" high: "9 us" range_source: "r")");
  text.replace(text.find(hbm), hbm.size(),
               R"(reserve { value: "1 GiB" evidence: "measured" source: "s" } )" + hbm);
  const Machine m = parse_profile(text, "p.textproto");
  EXPECT_EQ(m.levels[1].latency, (Figure{5e3, Evidence::kPlaceholder, "s", 2e3, 9e3, "r"}));
  EXPECT_EQ(m.hbm_of_jobs(), 15 * 0x1p30);
  EXPECT_EQ(parse_profile(to_textproto(m), "written"), m);
}

std::string job_with(const std::string& supernode) { return "supernode { " + supernode + " }" + kJob; }

TEST(Profile, OfAJobIsItsMachineAndItsBudget) {
  const Job job = parse_job(job_with("devices: 1 profile: \"a100\""), "job.textproto").job;
  EXPECT_EQ(job.supernode.hbm, Bytes(76 * kGiB.value)) << "without the reserve of 4 GiB";
  EXPECT_EQ(machine_of(job.supernode).name, "a100");
  EXPECT_EQ(parse_job(to_textproto(job), "job.textproto").job.supernode, job.supernode);
  const Job less = parse_job(job_with("devices: 1 profile: \"a100\" hbm: \"1 GiB\""), "job.textproto").job;
  EXPECT_EQ(less.supernode.hbm, kGiB);
}

TEST(Profile, MayBeAFileBesideTheJob) {
  const TemporaryDirectory folder;
  put_file(folder / "mine.textproto", std::string(kDevice) + kLevels);
  const Job job = parse_job(job_with("devices: 1 profile: \"mine.textproto\""), folder / "job.textproto").job;
  EXPECT_EQ(machine_of(job.supernode).about, "a machine");
  // A device reads the job without knowing its folder.
  EXPECT_EQ(parse_job(to_binary(job), "session").job.supernode, job.supernode);
}

TEST(Profile, OfAJobThatCannotBe) {
  const Error none =
      refused([] { parse_job(job_with("devices: 1 profile: \"matrix385\""), "job.textproto"); });
  EXPECT_EQ(none.code(), Code::kMissingFile);
  EXPECT_EQ(none.place(), "job.textproto:1:24");
  EXPECT_THAT(none.legal(), HasSubstr("a100, a100_megatron, atlas_a2, b200, h100, matrix384"));
  const Error both = refused(
      [] { parse_job(job_with("devices: 1 profile: \"a100\" link_latency: \"1 us\""), "job.textproto"); });
  EXPECT_EQ(both.code(), Code::kBadValue);
  EXPECT_EQ(both.place(), "job.textproto:1:40");
  const Error larger =
      refused([] { parse_job(job_with("devices: 1 profile: \"h100\" hbm: \"500 GiB\""), "job.textproto"); });
  EXPECT_THAT(
      larger.cause(),
      HasSubstr("of the profile \"h100\" has 76.0 GiB of HBM beside what its software takes, not 500 GiB"));
  EXPECT_EQ(larger.place(), "job.textproto:1:40");
  const Error pool = refused(
      [] { parse_job(job_with("devices: 9 profile: \"h100\" pool: \"50000 GiB\""), "job.textproto"); });
  EXPECT_THAT(pool.cause(), HasSubstr("16 devices of the profile \"h100\" have 4096 GiB of pool, not"));
  const Error flash = refused(
      [] { parse_job(job_with("devices: 2 profile: \"h100\" flash: \"1000 TiB\""), "job.textproto"); });
  EXPECT_THAT(flash.cause(), HasSubstr("2 devices of the profile \"h100\" have"));
  const TemporaryDirectory folder;
  put_file(folder / "mine.textproto", std::string("devices: 32 ") + kDevice + kLevels);
  const Error devices = refused(
      [&] { parse_job(job_with("devices: 33 profile: \"mine.textproto\""), folder / "job.textproto"); });
  EXPECT_THAT(devices.cause(), HasSubstr("the profile \"mine\" has 32 devices, not 33"));
  const Error neither = refused([] { parse_job(job_with("devices: 1"), "job.textproto"); });
  EXPECT_EQ(neither.code(), Code::kMissingField);
}

}  // namespace
}  // namespace hyperrun
