// Ranks that host several devices: the same bits however the devices are divided, and errors that name them.
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
using ::testing::HasSubstr;
using ::testing::Not;

std::string on(const std::string& devices, const std::string& parallel) {
  return edited(kJob, {{"devices: 2", "devices: " + devices},
                       {R"(mesh { name: "dp" size: 2 } presets: "dp")", parallel}});
}

// All collectives that a training has: gathers and scatters of ZeRO, all-to-alls of experts, rings, messages
// of a pipeline.
std::string eight() {
  return edited(
      on("8", R"(mesh { name: "pp" size: 2 } mesh { name: "ep" size: 2 } mesh { name: "ring" size: 2 }
               presets: ["ep", "ring", "zero1"] pipeline { axis: "pp" })"),
      {{"hbm: \"16 MiB\"", "hbm: \"32 MiB\""},
       {"training {", "training { micro_batches: 2 "},
       {"model {", "model { experts { count: 4 choices: 2 ffn: 32 } "}});
}

// Each step's loss and gradient norm.
std::vector<std::pair<double, double>> numbers(const Workspace& workspace, const std::string& run) {
  std::vector<std::pair<double, double>> all;
  for (const nlohmann::json& line : workspace.metrics(run, "loss"))
    all.emplace_back(line.at("loss"), line.at("grad_norm"));
  return all;
}

// Runs a job with each number of ranks, and expects the first one's numbers to the bit.
void expect_same(const Workspace& workspace, const std::string& text, const std::vector<int>& ranks) {
  const std::string job = workspace.job(text);
  const auto folder = [](int n) { return "ranks-" + std::to_string(n); };
  for (const int n : ranks) {
    const Finished f =
        workspace.run(hyperrun({job, "--ranks", std::to_string(n), "--run-dir", folder(n)}), Seconds(120));
    ASSERT_THAT(f, Succeeded()) << f;
    EXPECT_EQ(f.err, "");
    EXPECT_EQ(numbers(workspace, folder(n)), numbers(workspace, folder(ranks.front()))) << n << " ranks";
    EXPECT_TRUE(totals(read_report(workspace / folder(n) / "report.json")).off_plan.empty());
  }
  EXPECT_TRUE(workspace.nothing_left());
}

// mpirun takes neither line ends of Windows nor a host with slots in two lines.
TEST(Ranks, OfAHostFileThatMpirunWouldRefuse) {
  const Workspace workspace;
  put_file(workspace / "hosts", "localhost slots=1\r\nlocalhost slots=1\r\n");
  const Finished f =
      workspace.run(hyperrun({workspace.job(), "--hostfile", "hosts", "--run-dir", "two-lines"}));
  ASSERT_THAT(f, Succeeded());
  EXPECT_EQ(f.err, "");
  EXPECT_TRUE(workspace.nothing_left());
}

// The words of ssh and of mpirun are told, and what to do about them.
TEST(Ranks, OnAHostThatIsNotThere) {
  const Workspace workspace;
  put_file(workspace / "hosts", "no-such-host.invalid slots=2\n");
  const Finished f =
      workspace.run(hyperrun({workspace.job(), "--hostfile", "hosts", "--run-dir", "nowhere"}));
  EXPECT_EQ(f.status, 5) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("error[mpi]: mpirun ended before the run did"),
                           HasSubstr("  | ORTE was unable to reliably start one or more daemons."),
                           HasSubstr("  fix: ")));
  put_file(workspace / "hosts", "[::1] slots=2\n");
  const Finished address =
      workspace.run(hyperrun({workspace.job(), "--hostfile", "hosts", "--run-dir", "nowhere"}));
  EXPECT_EQ(address.status, 5) << address;
  EXPECT_THAT(address.err, HasSubstr("hosts:1: error[mpi]: [::1] is an IPv6 address"));
}

TEST(Ranks, OfAnyNumberComputeTheSame) {
  const Workspace workspace;
  expect_same(workspace, eight(), {8, 3, 1});
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(content(workspace / "ranks-3/checkpoints/step-000006" / file),
              content(workspace / "ranks-8/checkpoints/step-000006" / file));
}

// The losses of one device differ by the order of additions.
TEST(Ranks, Host96Devices) {
  const Workspace workspace;
  const std::string job = edited(
      on("96", R"(mesh { name: "dp" size: 48 } mesh { name: "tp" size: 2 } presets: ["dp", "tp", "sp"])"),
      {{"batch: 8", "batch: 48"}});
  expect_same(workspace, job, {4, 1});
  const std::string one = edited(on("1", ""), {{"batch: 8", "batch: 48"}, {"16 MiB", "64 MiB"}});
  ASSERT_THAT(workspace.run(hyperrun({workspace.job(one, "one.textproto"), "--run-dir", "one"})),
              Succeeded());
  EXPECT_THAT(losses(workspace / "ranks-4"), RelativelyNear(losses(workspace / "one"), 1e-4));
}

// The example, and its model on one device: two steps.
TEST(Ranks, TrainAllDiesOfAMatrix384) {
  const Workspace workspace;
  const std::string text = edited(content(std::string(HYPERRUN_SOURCE_DIR) + "/examples/matrix384.textproto"),
                                  {{"../data/king-james.txt", "corpus.txt"},
                                   {"steps: 10", "steps: 2"},
                                   {"warmup_steps: 5", "warmup_steps: 1"}});
  const auto run = [&](const std::string& job, const std::string& folder) {
    const Finished f = workspace.run(hyperrun({workspace.job(job), "--run-dir", folder}), Seconds(240));
    EXPECT_THAT(f, Succeeded()) << f;
    return losses(workspace / folder);
  };
  const std::vector<double> all = run(text, "all");
  EXPECT_EQ(read_report(workspace / "all/report.json").devices.size(), 768U);
  const std::size_t from = text.find("parallel {"), to = text.find("data {");
  std::string one = text.substr(0, from) + text.substr(to);
  EXPECT_THAT(all, RelativelyNear(run(edited(one, {{"devices: 768", "devices: 1"}}), "one"), 1e-4));
}

TEST(Ranks, WithAPool) {
  const Workspace workspace;
  expect_same(workspace,
              edited(on("4", R"(mesh { name: "dp" size: 4 } presets: "dp")"),
                     {{"hbm: \"16 MiB\"", "hbm: \"1800 KiB\" pool: \"64 MiB\""},
                      {"data {", "memory { policy: \"hyperoffload\" }\ndata {"}}),
              {4, 2, 1});
}

TEST(Ranks, WithFilesOnFlash) {
  const Workspace workspace;
  expect_same(workspace,
              edited(on("4", R"(mesh { name: "dp" size: 4 } presets: "dp")"),
                     {{"hbm: \"16 MiB\"", "hbm: \"1800 KiB\" flash: \"64 MiB\""},
                      {"data {", "memory { policy: \"hyperoffload\" tier: \"flash\" }\ndata {"}}),
              {4, 2});
}

// Streams of a device are threads on the paced clock, and then so are its devices.
TEST(Ranks, OnThePacedClock) {
  const Workspace workspace;
  expect_same(
      workspace,
      edited(on("4", R"(mesh { name: "dp" size: 2 } mesh { name: "tp" size: 2 } presets: ["dp", "tp"])"),
             {{"steps: 6", "steps: 2"}, {"run {", "run { clock: \"paced\" dilation: 2000 "}}),
      {4, 2});
}

TEST(Ranks, WithAThreadForEachStream) {
  const Workspace workspace;
  expect_same(workspace, edited(eight(), {{"run {", "run { streams: PER_STREAM "}}), {2, 8});
}

TEST(Ranks, ResumeAndGenerateWithOtherRanks) {
  const Workspace workspace;
  const std::string four = on("4", R"(mesh { name: "dp" size: 2 } mesh { name: "tp" size: 2 }
                                      presets: ["dp", "tp", "zero1"])");
  const std::string job =
      workspace.job(edited(four, {{"directory: \"out\"", R"(directory: "out" checkpoint_every: 3
                    generate { prompt: "The harbour" tokens: 12 temperature: 0.8 })"}}));
  ASSERT_THAT(workspace.run(hyperrun({job, "--ranks", "2"})), Succeeded());
  fs::remove_all(workspace / "out/checkpoints/step-000006");
  ASSERT_THAT(workspace.run(hyperrun({job, "--ranks", "4", "--resume", "out", "--run-dir", "more"})),
              Succeeded());
  const std::vector<double> all = losses(workspace / "out"), more = losses(workspace / "more");
  EXPECT_EQ(more, std::vector<double>(all.begin() + 3, all.end()));
  EXPECT_EQ(content(workspace / "more/generated.txt"), content(workspace / "out/generated.txt"));
}

TEST(Ranks, AreFewerThanDevicesUnderAForeignMpirun) {
  const Workspace workspace;
  const std::string job = workspace.job(eight());
  ASSERT_THAT(workspace.run(hyperrun({job, "--run-dir", "ours"})), Succeeded());
  const Finished f = workspace.run(mpirun(3, {job, "--run-dir", "foreign"}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_EQ(losses(workspace / "foreign"), losses(workspace / "ours"));
}

// All devices of a process that is gone are named as one.
TEST(Ranks, ThatAreKilledAreNamedWithTheirDevices) {
  const Workspace workspace;
  const std::string job =
      workspace.job(edited(eight(), {{"steps: 6", "steps: 1000000"},
                                     {"directory: \"out\"", "directory: \"out\" checkpoint_every: 2"}}));
  const auto run = workspace.start(hyperrun({job, "--ranks", "3"}));
  ASSERT_TRUE(eventually([&] { return fs::exists(workspace / "out/checkpoints/step-000002"); }, Seconds(20)))
      << run->err();
  kill(workspace.device(1), SIGKILL);
  const Finished f = run->wait(Seconds(20));
  EXPECT_EQ(f.status, 8) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("devices 2 to 4 (host "), HasSubstr("error[device-lost]: lost: "),
                           Not(HasSubstr("\n  device 3:"))));
  EXPECT_EQ(occurrences(f.err, "error["), 1) << f;
  EXPECT_TRUE(workspace.nothing_left());
}

TEST(Ranks, MoreThanDevicesAreRefused) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun({workspace.job(), "--ranks", "3"}));
  EXPECT_EQ(f.status, 2) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("--ranks: error[usage]: 3 ranks for 2 devices"), HasSubstr("1 to 2")));
}

TEST(Ranks, ThatLackOpenFilesAreRefusedBeforeTheyStart) {
  const Workspace workspace;
  Command few{"prlimit", "--nofile=60"};
  const Command command = hyperrun({workspace.job()});
  few.insert(few.end(), command.begin(), command.end());
  const Finished f = workspace.run(few);
  EXPECT_EQ(f.status, 5) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("ulimit -n: error[mpi]: 2 ranks take up to 76 open files"),
                           HasSubstr("and a process may have 60"), HasSubstr("fix: raise the limit")));
  EXPECT_FALSE(fs::exists(workspace / "out"));
}

// Budgets of 60 GiB are no matter: only the planned peak is memory.
TEST(Ranks, ThatLackMemoryAreRefusedBeforeTheyStart) {
  const Workspace workspace;
  const std::string large = edited(
      on("64", R"(mesh { name: "dp" size: 64 } presets: "dp")"),
      {{"hbm: \"16 MiB\"", "hbm: \"60 GiB\""}, {"batch: 8", "batch: 64"}, {"hidden: 64", "hidden: 8192"}});
  const Finished f = workspace.run(hyperrun({workspace.job(large)}), Seconds(60));
  EXPECT_EQ(f.status, 4) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("error[does-not-fit]: 64 devices of this host need"),
                           HasSubstr("legal: up to "), HasSubstr(" such devices"), HasSubstr("fix: ")));
  EXPECT_FALSE(fs::exists(workspace / "out"));
}

}  // namespace
}  // namespace hyperrun::testing
