// Software profiles and tables of kernels: built-in ones, files of the user, and their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/error.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "runtime/spec/kernel_table_reader.h"
#include "runtime/spec/profile_figures.h"
#include "runtime/spec/profile_reader.h"
#include "runtime/spec/profile_writer.h"
#include "runtime/spec/software_reader.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSoftware = R"(name: "mine" about: "a framework"
memory { workspace { value: "1 MiB" evidence: "placeholder" source: "s" low: "0 B" high: "2 MiB" range_source: "r" } }
issue { in_order { value: "1" evidence: "data sheet" source: "s" } }
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

Job job_with(const std::string& supernode, const std::string& path = "job.textproto") {
  return parse_job("supernode { devices: 1 " + supernode + R"( }
model { layers: 1 hidden: 64 heads: 4 vocab: 300 sequence: 32 }
training { batch: 1 }
)",
                   path, JobUse::kToBeForeseen)
      .job;
}

TEST(SoftwareProfile, ThoseThatAreBuiltInSayWhereTheirNumbersAreFrom) {
  for (const BuiltInText& t : built_in_software()) {
    const Software s = parse_software(t.text, std::string(t.name));
    EXPECT_EQ(s.name, t.name);
    EXPECT_FALSE(s.about.empty());
  }
  const Software megatron = load_software("megatron", "job.textproto");
  EXPECT_EQ(megatron.memory.unused_gradients.value, 2);
  EXPECT_THAT(megatron.memory.unused_gradients.source, HasSubstr("get_dummy_wgrad"));
}

TEST(SoftwareProfile, OfAJobRunsOnItsMachine) {
  const Job job = job_with(R"(profile: "b200" software: "megatron")");
  const Machine machine = machine_of(job.supernode);
  EXPECT_EQ(machine.software.name, "megatron");
  EXPECT_TRUE(machine.in_order());
  EXPECT_TRUE(machine.joins());
  EXPECT_EQ(parse_job(to_textproto(job), "x", JobUse::kToBeForeseen).job.supernode, job.supernode);
  const Machine alone = machine_of(job_with(R"(profile: "b200")").supernode);
  EXPECT_FALSE(alone.in_order());
  EXPECT_GT(figures_of(machine).size(), figures_of(alone).size());
  EXPECT_EQ(figures_of(machine).back().path, "software.issue.feeder.micro_batch");
}

TEST(SoftwareProfile, MayBeAFileBesideTheJob) {
  const TemporaryDirectory folder;
  put_file(folder / "mine.textproto", kSoftware);
  const Job job = job_with(R"(profile: "h100" software: "mine.textproto")", folder / "job.textproto");
  EXPECT_EQ(machine_of(job.supernode).software.memory.workspace.value, 1 << 20);
  EXPECT_EQ(parse_job(to_binary(job), "session", JobUse::kToBeForeseen).job.supernode, job.supernode);
}

TEST(SoftwareProfile, ThatCannotBe) {
  const Error none = refused([] { job_with(R"(profile: "h100" software: "megatrom")"); });
  EXPECT_EQ(none.code(), Code::kMissingFile);
  EXPECT_THAT(none.legal(), HasSubstr("megatron"));
  EXPECT_THAT(none.place(), HasSubstr("job.textproto:1:"));
  const Error flat = refused([] { job_with(R"(hbm: "1 GiB" software: "megatron")"); });
  EXPECT_THAT(flat.cause(), HasSubstr("a flat machine runs no software"));
  std::string text = kSoftware;
  text.replace(text.find("value: \"1\""), 10, "value: \"2\"");
  EXPECT_THAT(refused([&] { parse_software(text, "s.textproto"); }).cause(),
              HasSubstr("\"in_order\" cannot be \"2\""));
  text = kSoftware;
  text.replace(text.find("2 MiB"), 5, "9 kiB");
  EXPECT_THAT(refused([&] { parse_software(text, "s.textproto"); }).place(), HasSubstr("s.textproto:2:"));
  text = kSoftware;
  text.replace(text.find("2 MiB"), 5, "9 KiB");
  EXPECT_THAT(refused([&] { parse_software(text, "s.textproto"); }).cause(), HasSubstr("does not lie from"));
}

TEST(KernelTableFile, IsReadWithItsPasses) {
  const auto rows = read_kernels(
      "# about\nkernel,pass,shape,share\nproduct,,,0.5\nproduct,forward,rows=4 in=8 out=16,0.75\r\n"
      "permutation,backward,,0.25\n",
      "t.csv");
  ASSERT_EQ(rows.size(), 5U);
  const KernelTable table(rows, "t.csv", "s");
  EXPECT_EQ(table.share({KernelKind::kProduct, KernelPass::kForward, {4, 8, 16}}), 0.75);
  EXPECT_EQ(table.share({KernelKind::kProduct, KernelPass::kWeightGradient, {4, 8, 16}}), 0.5);
  EXPECT_EQ(table.share({KernelKind::kPermutation, KernelPass::kBackward, {}}), 0.25);
  EXPECT_EQ(table.share({KernelKind::kPermutation, KernelPass::kForward, {}}), std::nullopt);
}

TEST(KernelTableFile, WhatIsNoneIsToldWithItsLine) {
  const auto cause = [](const std::string& csv) {
    const Error e = refused([&] { read_kernels(csv, "t.csv"); });
    return e.place() + " " + e.cause() + " [" + e.legal() + "]";
  };
  const auto with = [&](const std::string& line) { return cause("kernel,pass,shape,share\n" + line + "\n"); };
  EXPECT_THAT(cause(""), HasSubstr("no rows"));
  EXPECT_THAT(cause("product,,,0.5\n"), HasSubstr("t.csv:1 the first line does not name the columns"));
  EXPECT_THAT(with("product,,0.5"), HasSubstr("t.csv:2 3 fields"));
  EXPECT_THAT(with("gemm,,,0.5"), HasSubstr("kernel \"gemm\" is not known [product, grouped, attention"));
  EXPECT_THAT(with("product,backward,,0.5"), HasSubstr("forward, input_gradient, weight_gradient"));
  EXPECT_THAT(with("product,,,1.5"), HasSubstr("share is \"1.5\""));
  EXPECT_THAT(with("product,,rows=4 in=8,0.5"), HasSubstr("the shape has no \"out\""));
  EXPECT_THAT(with("product,,rows=4 in=8 depth=1,0.5"), HasSubstr("\"depth=1\" is no size"));
  EXPECT_THAT(with("product,,rows=4 rows=8 in=1 out=1,0.5"), HasSubstr("\"rows=8\" is no size"));
  EXPECT_THAT(with("permutation,,rows=4,0.5"), HasSubstr("this kernel has one share"));
  EXPECT_THAT(with("product,,,0.5\nproduct,forward,,0.6"), HasSubstr("t.csv:3 this kernel, pass and shape"));
}

TEST(KernelTableFile, LiesBesideItsProfile) {
  const Machine b200 = load_profile("b200", "");
  EXPECT_GT(b200.kernels.size(), 500U);
  EXPECT_EQ(b200.kernels.share({KernelKind::kProduct, KernelPass::kForward, {4096, 8192, 10240}}), 0.6452);
  const TemporaryDirectory folder;
  std::string text = to_textproto(load_profile("h100", ""));
  text += "kernels { file: \"mine.csv\" source: \"s\" }\n";
  put_file(folder / "mine.textproto", text);
  const Error missing = refused([&] { load_profile(folder / "mine.textproto", ""); });
  EXPECT_THAT(missing.cause(), HasSubstr("no table of kernels \"mine.csv\""));
  EXPECT_THAT(missing.legal(), HasSubstr("b200_kernels.csv"));
  put_file(folder / "mine.csv", "kernel,pass,shape,share\nproduct,,,0.5\n");
  const Machine mine = load_profile(folder / "mine.textproto", "");
  EXPECT_EQ(mine.kernels.size(), 3U);
  EXPECT_EQ(parse_profile(to_textproto(mine), "elsewhere/written"), mine);
}

}  // namespace
}  // namespace hyperrun
