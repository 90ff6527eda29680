// Files of faults: the built-in one, files of the user, and their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/error.h"
#include "runtime/faults/study.h"
#include "runtime/spec/faults_reader.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refused(const std::string& text) {
  try {
    parse_faults(text, "f.textproto");
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(Faults, ThatAreBuiltInHaveTheirCounts) {
  const FaultModel spec = load_faults("default");
  EXPECT_EQ(spec.name, "default");
  // 419 unplanned interruptions in 54 days on 16,384 devices.
  const double count = fault_rate(spec, 16'384) * 54 * 86'400;
  EXPECT_NEAR(count, 419, 0.05);
  EXPECT_NEAR(fault_rate(spec, FaultKind::kDevice, 16'384) * 54 * 86'400, 268, 0.01);
  EXPECT_NEAR(fault_rate(spec, FaultKind::kHost, 16'384) * 54 * 86'400, 53, 0.01);
  EXPECT_NEAR(fault_rate(spec, FaultKind::kSwitch, 16'384) * 54 * 86'400, 35, 0.01);
  EXPECT_NEAR(fault_rate(spec, FaultKind::kSoftware, 16'384) * 54 * 86'400, 63, 0.01);
}

// Llama 3 405B had more than 90 % of effective training time on 16,384 devices (section 3.3.4), by restarts
// that went without a hand. 16 M tokens a step at 400 TFLOP/s of a device take 6 s.
TEST(Faults, ThatAreBuiltInGiveNoLessThanTheGoodputThatIsPublished) {
  FaultModel spec = load_faults("default");
  spec.policies = {"spares", "memory"};
  const FaultStudy study =
      study_faults(spec, {.step = 6, .state_bytes = 12 * 405e9, .devices = 16'384, .replica = 128});
  for (const FaultRow& row : study.scales[0].rows)
    EXPECT_GT(row.goodput.mean - row.goodput.within, 0.9) << row.policy.name;
}

TEST(Faults, AreReadWithEveryUnit) {
  const FaultModel s = parse_faults(
      R"(device { mtbf: "10 days" lasting: 0.25 } switch { mtbf: "1 h" devices: 32 repair: "90 min" }
delays { detection: "500 ms" reaction: "1 day" start: "0 s" compile: "1.5 min" join: "2 s" }
storage { bandwidth: "10 GB/s" device_bandwidth: "1 GiB/s" }
save { beside: true snapshot: "2 GB/s" share: 0 }
spares: 3 horizon: "7 d" samples: 5 seed: 9 scales: [8, 16] policies: ["stop", "all"])",
      "mine.textproto");
  EXPECT_EQ(s.name, "mine");
  EXPECT_EQ(s.device.mtbf, 864'000);
  EXPECT_EQ(s.device.lasting, 0.25);
  EXPECT_EQ(s.switches.repair, 5400);
  EXPECT_EQ(s.delays.detection, 0.5);
  EXPECT_EQ(s.delays.reaction, 86'400);
  EXPECT_EQ(s.delays.starting(), 92);
  EXPECT_EQ(s.storage.device_bandwidth, 1 << 30);
  EXPECT_EQ(s.horizon, 7 * 86'400);
  EXPECT_EQ(s.scales, (std::vector<std::int32_t>{8, 16}));
  EXPECT_EQ(s.policies.back(), "all");
}

TEST(Faults, ThatCannotBe) {
  const std::string good = R"(device { mtbf: "1000 h" } storage { bandwidth: "1 GB/s" } )";
  EXPECT_THAT(refused(R"(storage { bandwidth: "1 GB/s" })"), HasSubstr("how often it fails"));
  EXPECT_THAT(refused(R"(device { mtbf: "1000 h" })"),
              AllOf(HasSubstr("missing-field"), HasSubstr("the file has no \"storage\"")));
  EXPECT_THAT(refused(R"(device { } storage { bandwidth: "1 GB/s" })"),
              HasSubstr("\"device\" has no \"mtbf\""));
  EXPECT_THAT(refused(good + R"(horizon: "30")"),
              AllOf(HasSubstr("f.textproto:1:"), HasSubstr("a number and ms, s, min, h or days")));
  EXPECT_THAT(refused(good + R"(horizon: "0 s")"), HasSubstr("\"horizon\" cannot be \"0 s\""));
  EXPECT_THAT(refused(good + R"(policies: ["restrat"])"), HasSubstr("did you mean \"restart\"?"));
  EXPECT_THAT(refused(good + R"(policies: ["stop", "stop"])"), HasSubstr("is given twice"));
  EXPECT_THAT(refused(good + "scales: [0]"), HasSubstr("\"scales\" cannot hold 0"));
  EXPECT_THAT(refused(good + "sparse: 3"), HasSubstr("did you mean \"spares\"?"));
  EXPECT_THAT(refused(R"(device { mtbf: "1 s" } storage { bandwidth: "1 GB/s" })"),
              HasSubstr("faults within the horizon are too many"));
  try {
    load_faults("defualt");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kMissingFile);
    EXPECT_THAT(e.legal(), HasSubstr("default"));
  }
}

}  // namespace
}  // namespace hyperrun
