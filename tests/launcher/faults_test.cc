// hyperrun sim --faults, as a user calls it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kFaults = R"(device { mtbf: "2000 h" repair: "8 h" }
software { mtbf: "5000 h" }
storage { bandwidth: "1 MB/s" }
spares: 2
samples: 4
)";

class SimFaults : public ::testing::Test {
 protected:
  SimFaults() { workspace_.job(kFaults, "faults.textproto"); }
  Finished sim(std::vector<std::string> options) const {
    options.insert(options.begin(), {"--faults", "faults.textproto"});
    return workspace_.run_on_job("sim", kJob, options);
  }

  Workspace workspace_;
};

TEST_F(SimFaults, PrintsATableAndDrawsAPicture) {
  const Finished f = sim({"--devices", "2,64,1024", "--svg", workspace_ / "goodput.svg"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, AllOf(HasSubstr("What faults cost tiny, simulated: 4 histories of 30 days"),
                           HasSubstr("elastic"), HasSubstr("1,024"), HasSubstr("Young")));
  EXPECT_TRUE(std::filesystem::exists(workspace_ / "goodput.svg"));
}

TEST_F(SimFaults, AnswersPrograms) {
  const Finished f = sim({"--json"});
  ASSERT_THAT(f, Succeeded()) << f;
  const auto json = nlohmann::json::parse(f.out);
  // 12 bytes for each weight of the job, read from its own report.
  const auto report = nlohmann::json::parse(workspace_.run_on_job("sim", kJob, {"--json", "--no-range"}).out);
  EXPECT_EQ(json.at("state_bytes"), 12 * report.at("parameters").get<double>());
  EXPECT_EQ(json.at("scales")[0].at("devices_of_a_replica"), 1);
  EXPECT_EQ(sim({"--json"}).out, f.out) << "a seed repeats it";
  EXPECT_EQ(std::ranges::count(sim({"--csv"}).out, '\n'), 7);
}

TEST_F(SimFaults, TakesTheBuiltInFile) {
  const Finished f = workspace_.run_on_job("sim", kJob, {"--faults", "default", "--devices", "16384"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, HasSubstr("419 unplanned interruptions"));
}

TEST_F(SimFaults, RefusesWhatCannotBe) {
  const auto refused = [&](const std::vector<std::string>& options) {
    return workspace_.run_on_job("sim", kJob, options).err;
  };
  EXPECT_THAT(refused({"--svg", "a.svg"}), AllOf(HasSubstr("--svg"), HasSubstr("--faults")));
  EXPECT_THAT(refused({"--faults", "none"}), HasSubstr("--faults: error[missing-file]"));
  EXPECT_THAT(refused({"--faults", "default", "--trace", "t"}), HasSubstr("error[usage]"));
  EXPECT_THAT(refused({"--faults", "default", "--devices", "0"}), HasSubstr("multiples of 1"));
  EXPECT_THAT(refused({"--faults", "default", "--svg", "a.png"}), HasSubstr("--svg"));
}

}  // namespace
}  // namespace hyperrun::testing
