// Runs across hosts, which are network namespaces here (deploy/lab/netns.sh): the same results as on one
// host, and the same ends of failures. They are skipped, with the reason, where namespaces cannot be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "runtime/report/report.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A pipeline whose first stage needs more of the pool than its last.
std::string stages() {
  return edited(kJob, {{"hbm: \"16 MiB\"", "hbm: \"700 KiB\" pool: \"64 MiB\""},
                       {R"(mesh { name: "dp" size: 2 } presets: "dp")",
                        R"(mesh { name: "pp" size: 2 } pipeline { axis: "pp" })"},
                       {"data {", "memory { policy: \"hyperoffload\" }\ndata {"},
                       {"training {", "training { micro_batches: 4 "}});
}

// Bytes of prefetches and stores, over all devices, to or from another host's part of the pool.
Bytes moved_elsewhere(const RunReport& report) {
  Bytes sum{};
  for (const DeviceReport& d : report.devices)
    for (const TransferUse& t : d.transfers) sum += t.elsewhere;
  return sum;
}

const TierUse* pool_of(const DeviceReport& device) {
  const auto tier = std::ranges::find(device.tiers, "pool", &TierUse::tier);
  return tier == device.tiers.end() ? nullptr : &*tier;
}

Bytes planned_pool(const RunReport& report) {
  Bytes sum{};
  for (const DeviceReport& d : report.devices)
    if (const TierUse* pool = pool_of(d)) sum += pool->planned_peak;
  return sum;
}

void expect_pool_as_planned(const RunReport& report) {
  for (const DeviceReport& d : report.devices) {
    if (const TierUse* pool = pool_of(d)) {
      EXPECT_EQ(pool->executed_peak, pool->planned_peak) << d.device;
    }
  }
}

const std::string kNetns = std::string(HYPERRUN_SOURCE_DIR) + "/deploy/lab/netns.sh";

class Hosts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    workspace_ = std::make_unique<Workspace>();
    const Finished up = workspace_->run({kNetns, "up", "3"});
    if (up.status != 0) why_not_ = up.err.empty() ? "netns.sh failed" : up.err;
    if (!why_not_.empty()) return;
    put_file(at("hosts"), "hr-host0 slots=1\nhr-host1 slots=1\n");
    put_file(at("others"), "hr-host1 slots=2\nhr-host2 slots=2\n");
    put_file(at("three"), "hr-host0 slots=2\nhr-host1 slots=1\nhr-host2 slots=1\n");
    two_ = workspace_->job(kJob, "two.textproto");
    four_ = workspace_->job(
        edited(
            kJob,
            {{"devices: 2", "devices: 4"},
             {R"(mesh { name: "dp" size: 2 } presets: "dp")",
              R"(mesh { name: "dp" size: 2 } mesh { name: "tp" size: 2 } presets: ["dp", "tp", "zero1"])"}}),
        "four.textproto");
    ASSERT_THAT(workspace_->run(hyperrun({two_, "--run-dir", "two"})), Succeeded());
    ASSERT_THAT(workspace_->run(hyperrun({four_, "--run-dir", "four"})), Succeeded());
  }

  static void TearDownTestSuite() {
    if (why_not_.empty()) workspace_->run({kNetns, "down"});
    workspace_.reset();
  }

  void SetUp() override {
    if (!why_not_.empty()) GTEST_SKIP() << why_not_;
  }

  void TearDown() override {
    if (!why_not_.empty()) return;
    EXPECT_TRUE(workspace_->nothing_left());
    EXPECT_TRUE(eventually([] { return processes_on_hosts().empty(); }, Seconds(3))) << processes_on_hosts();
  }

  static fs::path at(std::string_view name) { return *workspace_ / name; }

  // Runs the command on hr-host0.
  static Command on_hosts(const Command& command) {
    Command all{kNetns, "run"};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }

  static std::string processes_on_hosts() {
    std::string pids;
    for (const char* host : {"hr-host0", "hr-host1", "hr-host2"})
      pids += workspace_->run({"ip", "netns", "pids", host}).out;
    return pids;
  }

  static RunReport report_of(const std::string& run_directory) {
    return read_report(at(run_directory) / "report.json");
  }

  // The job with a pool without a byte to spare; `name` is the run on one host that tells its size.
  static std::string tight(const std::string& text, const std::string& name) {
    const std::string roomy = workspace_->job(text, name + ".textproto");
    EXPECT_THAT(workspace_->run(hyperrun({roomy, "--run-dir", name})), Succeeded());
    const std::string pool = std::to_string(planned_pool(report_of(name)).value);
    return edited(text, {{"64 MiB", pool + " B"}});
  }

  static std::vector<std::string> hosts_of(const std::string& run_directory) {
    return nlohmann::json::parse(content(at(run_directory) / "manifest.json")).at("hosts");
  }

  static inline std::unique_ptr<Workspace> workspace_;
  static inline std::string why_not_, two_, four_;
};

TEST_F(Hosts, TwoComeToTheLossesOfOneAndRepeatThem) {
  for (const char* name : {"first", "second"}) {
    const Finished f = workspace_->run(on_hosts(hyperrun({two_, "--hostfile", "hosts", "--run-dir", name})));
    ASSERT_THAT(f, Succeeded());
    EXPECT_EQ(occurrences(f.err, "error["), 0) << f;  // mpirun may have warnings of its own
  }
  EXPECT_THAT(hosts_of("first"), ElementsAre("hr-host0", "hr-host1"));
  EXPECT_THAT(losses(at("first")), RelativelyNear(losses(at("two")), 1e-4));
  EXPECT_EQ(losses(at("second")), losses(at("first")));
  EXPECT_EQ(content(at("second/checkpoints/step-000006/model.safetensors")),
            content(at("first/checkpoints/step-000006/model.safetensors")));
}

TEST_F(Hosts, ThreeUnderAForeignMpirun) {
  const Finished f = workspace_->run(
      on_hosts(mpirun(4, {four_, "--run-dir", "foreign"}, {"--hostfile", "three", "--bind-to", "none"})));
  ASSERT_THAT(f, Succeeded());
  EXPECT_EQ(occurrences(f.err, "error["), 0) << f;  // mpirun may have warnings of its own
  EXPECT_EQ(occurrences(f.out, "parameters on 4 devices"), 1) << f;
  EXPECT_THAT(hosts_of("foreign"), ElementsAre("hr-host0", "hr-host0", "hr-host1", "hr-host2"));
  EXPECT_THAT(losses(at("foreign")), RelativelyNear(losses(at("four")), 1e-4));
}

// Two devices in each of two processes. Those of a process meet in memory, the others by messages.
TEST_F(Hosts, WithRanksOfSeveralDevices) {
  const Command command = hyperrun({four_, "--hostfile", "hosts", "--ranks", "2"});
  for (const char* name : {"few-ranks", "few-ranks-again"}) {
    Command one = command;
    one.insert(one.end(), {"--run-dir", name});
    const Finished f = workspace_->run(on_hosts(one));
    ASSERT_THAT(f, Succeeded());
    EXPECT_EQ(occurrences(f.err, "error["), 0) << f;
  }
  EXPECT_THAT(hosts_of("few-ranks"), ElementsAre("hr-host0", "hr-host0", "hr-host1", "hr-host1"));
  EXPECT_THAT(losses(at("few-ranks")), RelativelyNear(losses(at("four")), 1e-4));
  EXPECT_EQ(losses(at("few-ranks-again")), losses(at("few-ranks")));
  // One device a rank on the same hosts.
  put_file(at("two-each"), "hr-host0 slots=2\nhr-host1 slots=2\n");
  ASSERT_THAT(
      workspace_->run(on_hosts(hyperrun({four_, "--hostfile", "two-each", "--run-dir", "two-each-run"}))),
      Succeeded());
  EXPECT_EQ(losses(at("two-each-run")), losses(at("few-ranks")));
  // Two ranks leave no host idle.
  ASSERT_THAT(workspace_->run(on_hosts(
                  hyperrun({four_, "--hostfile", "two-each", "--ranks", "2", "--run-dir", "spread"}))),
              Succeeded());
  EXPECT_THAT(hosts_of("spread"), ElementsAre("hr-host0", "hr-host0", "hr-host1", "hr-host1"));
}

TEST_F(Hosts, WithoutTheOneThatStartsThem) {
  const Finished f =
      workspace_->run(on_hosts(hyperrun({four_, "--hostfile", "others", "--run-dir", "others-run"})));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(hosts_of("others-run"), ElementsAre("hr-host1", "hr-host1", "hr-host2", "hr-host2"));
  EXPECT_THAT(losses(at("others-run")), RelativelyNear(losses(at("four")), 1e-4));
}

TEST_F(Hosts, NamedByArgumentsOfMpirunResumeACheckpointOfOneHost) {
  ASSERT_THAT(
      workspace_->run(hyperrun(
          {workspace_->job(edited(kJob, {{"directory: \"out\"", "checkpoint_every: 3"}}), "saves.textproto"),
           "--run-dir", "saves"})),
      Succeeded());
  const Finished f = workspace_->run(
      on_hosts(hyperrun({two_, "--mpirun-arg=--host", "--mpirun-arg=hr-host0:1,hr-host2:1", "--resume",
                         "saves/checkpoints/step-000003", "--run-dir", "resumed"})));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(hosts_of("resumed"), ElementsAre("hr-host0", "hr-host2"));
  const std::vector<double> all = losses(at("two"));
  EXPECT_THAT(losses(at("resumed")), RelativelyNear(std::vector<double>(all.begin() + 3, all.end()), 1e-4));
}

// With stages that need different amounts of the pool, one host's share is too small, and the other has room.
TEST_F(Hosts, WhatLiesInTheOthersShareOfThePoolIsTheSameBits) {
  const std::string job = workspace_->job(tight(stages(), "stages-roomy"), "stages.textproto");
  ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", "stages-one"})), Succeeded());
  const Finished f =
      workspace_->run(on_hosts(hyperrun({job, "--hostfile", "hosts", "--run-dir", "stages-two"})));
  ASSERT_THAT(f, Succeeded());
  EXPECT_EQ(occurrences(f.err, "error["), 0) << f;
  EXPECT_THAT(hosts_of("stages-two"), ElementsAre("hr-host0", "hr-host1"));
  EXPECT_EQ(losses(at("stages-two")), losses(at("stages-one")));
  EXPECT_EQ(content(at("stages-two/checkpoints/step-000006/model.safetensors")),
            content(at("stages-one/checkpoints/step-000006/model.safetensors")));
  EXPECT_EQ(moved_elsewhere(report_of("stages-one")), Bytes(0));
  EXPECT_GT(moved_elsewhere(report_of("stages-two")), Bytes(0));
  EXPECT_THAT(f.out, HasSubstr("other hosts"));
  expect_pool_as_planned(report_of("stages-two"));
}

// Four stages in two processes: each serves the others' part of the pool.
TEST_F(Hosts, WithRanksOfSeveralDevicesShareThePool) {
  const std::string text = edited(stages(), {{"devices: 2", "devices: 4"},
                                             {"layers: 2", "layers: 8"},
                                             {"name: \"pp\" size: 2", "name: \"pp\" size: 4"}});
  const std::string job = workspace_->job(tight(text, "four-roomy"), "four-stages.textproto");
  ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", "four-stages-one"})), Succeeded());
  ASSERT_THAT(workspace_->run(on_hosts(
                  hyperrun({job, "--hostfile", "hosts", "--ranks", "2", "--run-dir", "four-stages-two"}))),
              Succeeded());
  EXPECT_EQ(losses(at("four-stages-two")), losses(at("four-stages-one")));
  EXPECT_GT(moved_elsewhere(report_of("four-stages-two")), Bytes(0));
  expect_pool_as_planned(report_of("four-stages-two"));
}

// Two stages on one host, one on the other.
TEST_F(Hosts, WithDifferentNumbersOfDevicesShareThePoolAllTheSame) {
  const std::string three = edited(stages(), {{"devices: 2", "devices: 3"},
                                              {"layers: 2", "layers: 6"},
                                              {"name: \"pp\" size: 2", "name: \"pp\" size: 3"}});
  const std::string job = workspace_->job(tight(three, "three-roomy"), "three.textproto");
  put_file(at("two-and-one"), "hr-host0 slots=2\nhr-host1 slots=1\n");
  ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", "three-one"})), Succeeded());
  ASSERT_THAT(
      workspace_->run(on_hosts(hyperrun({job, "--hostfile", "two-and-one", "--run-dir", "three-hosts"}))),
      Succeeded());
  EXPECT_THAT(hosts_of("three-hosts"), ElementsAre("hr-host0", "hr-host0", "hr-host1"));
  EXPECT_EQ(losses(at("three-hosts")), losses(at("three-one")));
  EXPECT_GT(moved_elsewhere(report_of("three-hosts")), Bytes(0));
  expect_pool_as_planned(report_of("three-hosts"));
}

// Debian's own setting, which a user may have made.
TEST_F(Hosts, WithoutWindowsBetweenThemSayWhatWouldFitAndComputeNothing) {
  const std::string job = workspace_->job(tight(stages(), "stages-roomy"), "stages.textproto");
  const Finished f = workspace_->run(
      on_hosts(hyperrun({job, "--hostfile", "hosts", "--run-dir", "refused", "--mpirun-arg=--mca",
                         "--mpirun-arg=osc", "--mpirun-arg=^ucx,pt2pt"})));
  EXPECT_EQ(f.status, 5) << f;
  EXPECT_LT(f.time.count(), 10 * kSlowdown) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("error[mpi]: parts of the pool do not fit"), HasSubstr("MPI_Win_create"),
                           HasSubstr("  legal: "), HasSubstr("  fix: raise supernode.pool")));
  EXPECT_TRUE(losses(at("refused")).empty());
}

TEST_F(Hosts, AHostThatCannotBeReachedIsNamed) {
  put_file(at("wrong"), "hr-host0 slots=1\nhr-host7 slots=1\n");
  const Finished f =
      workspace_->run(on_hosts(hyperrun({two_, "--hostfile", "wrong", "--run-dir", "wrong-run"})));
  EXPECT_EQ(f.status, 5) << f;
  EXPECT_LT(f.time.count(), 10 * kSlowdown) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("error[mpi]"), HasSubstr("hr-host7")));
}

// The network of a host ends first, so nothing tells of the end of its processes, as when its power fails.
// Its memory goes, too: hosts of the lab share /dev/shm.
void take_down(Workspace& workspace, const std::string& host) {
  workspace.run({"ip", "-n", host, "link", "set", "eth0", "down"});
  workspace.run({"sh", "-c", "ip netns pids " + host + " | xargs -r kill -9"});
  workspace.run({"sh", "-c", "rm -f /dev/shm/vader_segment." + host + ".*"});
}

TEST_F(Hosts, ARunGoesOnWithoutAHostThatIsDownUntilItIsBack) {
  put_file(at("all"), "hr-host0 slots=1\nhr-host1 slots=1\nhr-host2 slots=2\n");
  const std::string job = workspace_->job(
      edited(kJob, {{"devices: 2", "devices: 4"},
                    {R"(mesh { name: "dp" size: 2 })", R"(mesh { name: "dp" size: 4 })"},
                    {"steps: 6", "steps: 1000000"},
                    {"directory: \"out\" restarts: 0", "heartbeat: \"1 s\" checkpoint_every: 50"}}),
      "down.textproto");
  const std::unique_ptr<Process> run =
      workspace_->start(on_hosts(hyperrun({job, "--hostfile", "all", "--run-dir", "down"})));
  const auto says = [&](const char* text) {
    return eventually([&] { return run->err().find(text) != std::string::npos; }, Seconds(40));
  };
  ASSERT_TRUE(eventually([] { return fs::exists(at("down") / "checkpoints"); }, Seconds(20))) << run->err();
  take_down(*workspace_, "hr-host2");
  EXPECT_TRUE(says("2 of 4 devices are there; the run goes on with 2")) << run->err();
  workspace_->run({"ip", "-n", "hr-host2", "link", "set", "eth0", "up"});
  EXPECT_TRUE(says("4 of 4 devices are there; the run goes on with 4 (dp 4)")) << run->err();
  const std::size_t steps = losses(at("down")).size();
  EXPECT_TRUE(eventually([&] { return losses(at("down")).size() > steps; }, Seconds(20)));
  run->signal(SIGINT);
  EXPECT_EQ(run->wait(Seconds(20)).status, 130);
  EXPECT_THAT(hosts_of("down"), ElementsAre("hr-host0", "hr-host1", "hr-host2", "hr-host2"));
}

// ---- Failures

enum class By { kHyperrun, kMpirun };
void PrintTo(By by, std::ostream* stream) { *stream << (by == By::kHyperrun ? "hyperrun" : "mpirun"); }

class FailureAcrossHosts : public Hosts, public ::testing::WithParamInterface<By> {
 protected:
  void SetUp() override {
    Hosts::SetUp();
    if (IsSkipped()) return;
    const std::string job = workspace_->job(
        edited(text(), {{"steps: 6", "steps: 1000000"}, {"directory: \"out\"", "heartbeat: \"500 ms\""}}),
        "long.textproto");
    fs::remove_all(at("failed"));
    const std::vector<std::string> arguments{job, "--run-dir", "failed"};
    Command command = mpirun(2, arguments, {"--hostfile", "hosts"});
    if (GetParam() == By::kHyperrun) {
      command = hyperrun(arguments);
      command.insert(command.end(), {"--hostfile", "hosts"});
    }
    run_ = workspace_->start(on_hosts(command));
    ASSERT_TRUE(eventually(
        [&] { return fs::exists(at("failed") / "metrics.jsonl") && losses(at("failed")).size() > 2; },
        Seconds(20)))
        << run_->err();
  }

  virtual std::string text() const { return kJob; }

  // Signals the remote device and expects that the run ends in time, by its own status or that of the killed
  // rank.
  void expect_end(int signal, int status, const std::vector<std::string>& said) {
    kill(workspace_->device(1), signal);
    const auto event = std::chrono::steady_clock::now();
    const Finished f = run_->wait(Seconds(30));
    const Seconds time = std::chrono::steady_clock::now() - event;
    EXPECT_LT(time.count(), 5.5 * kSlowdown) << f;  // limit of 5 s and the heartbeat
    if (GetParam() == By::kHyperrun)
      EXPECT_EQ(f.status, status) << f;
    else  // mpirun's status is that of the first rank that ended: the killed one or one that was told to end
      EXPECT_THAT(f.status, AnyOf(status, 128 + SIGKILL)) << f;
    for (const std::string& fragment : said) EXPECT_THAT(f.err, HasSubstr(fragment));
    EXPECT_EQ(nlohmann::json::parse(content(at("failed") / "manifest.json")).at("exit_status"), status);
  }

  std::unique_ptr<Process> run_;
};

TEST_P(FailureAcrossHosts, KilledDevice) {
  expect_end(SIGKILL, 8, {"device 1 (host hr-host1, pid ", "error[device-lost]: lost: "});
}

TEST_P(FailureAcrossHosts, StoppedDevice) {
  expect_end(SIGSTOP, 9,
             {"device 1 (host hr-host1, pid ", "error[device-hung]: hung: no heartbeat for 0.5 s"});
}

// The lost device lends the other bytes of the pool.
class FailureOfALender : public FailureAcrossHosts {
  std::string text() const override { return tight(stages(), "lender-roomy"); }
};

TEST_P(FailureOfALender, KilledDevice) {
  expect_end(SIGKILL, 8, {"device 1 (host hr-host1, pid ", "error[device-lost]: lost: "});
}

TEST_P(FailureOfALender, StoppedDevice) {
  expect_end(SIGSTOP, 9,
             {"device 1 (host hr-host1, pid ", "error[device-hung]: hung: no heartbeat for 0.5 s"});
}

INSTANTIATE_TEST_SUITE_P(By, FailureOfALender, ::testing::Values(By::kHyperrun, By::kMpirun),
                         [](const auto& info) {
                           return info.param == By::kHyperrun ? "Hyperrun" : "Mpirun";
                         });
INSTANTIATE_TEST_SUITE_P(By, FailureAcrossHosts, ::testing::Values(By::kHyperrun, By::kMpirun),
                         [](const auto& info) {
                           return info.param == By::kHyperrun ? "Hyperrun" : "Mpirun";
                         });

}  // namespace
}  // namespace hyperrun::testing
