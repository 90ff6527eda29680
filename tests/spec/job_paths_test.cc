// Files: the job itself, and the inputs that it names.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/spec/job_texts.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class JobFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(dir_ / "jobs");
    fs::create_directories(dir_ / "here");
    before_ = fs::current_path();
    fs::current_path(dir_ / "here");
  }
  void TearDown() override { fs::current_path(before_); }

  std::string write(const std::string& name, const std::string& content) {
    put_file(dir_ / name, content);
    return (dir_ / name).string();
  }
  static Error error_of(const std::string& path) {
    return hyperrun::error_of([&] { load_job(path); });
  }

  TemporaryDirectory dir_;
  fs::path before_;
};

TEST_F(JobFiles, TextAndBinaryAreToldApartByContent) {
  Job job = load_job(write("jobs/a.pb", std::string(kJobText))).job;
  EXPECT_EQ(load_job(write("jobs/b.textproto", to_binary(job))).job, job);
  EXPECT_EQ(read_job(write("jobs/c", to_binary(job))), job);
}

TEST_F(JobFiles, NotThere) {
  Error error = error_of((dir_ / "none.textproto").string());
  EXPECT_EQ(error.code(), Code::kMissingFile);
  EXPECT_EQ(error.place(), (dir_ / "none.textproto").string());
  EXPECT_THAT(error.cause(), HasSubstr("No such file"));
}

TEST_F(JobFiles, ADirectory) {
  Error error = error_of((dir_ / "jobs").string());
  EXPECT_EQ(error.code(), Code::kMissingFile);
  EXPECT_THAT(error.cause(), HasSubstr("directory"));
}

TEST_F(JobFiles, Unreadable) {
  std::string path = write("jobs/secret", std::string(kJobText));
  fs::permissions(path, fs::perms::none);
  if (access(path.c_str(), R_OK) == 0) GTEST_SKIP() << "this user reads every file";
  Error error = error_of(path);
  EXPECT_EQ(error.code(), Code::kMissingFile);
  EXPECT_THAT(error.cause(), HasSubstr("Permission denied"));
}

TEST_F(JobFiles, Empty) {
  EXPECT_EQ(error_of(write("jobs/empty", "")).code(), Code::kSyntax);
  EXPECT_EQ(error_of(write("jobs/blank", " \n\t\n")).code(), Code::kSyntax);
  EXPECT_EQ(error_of("/dev/null").code(), Code::kSyntax);
}

TEST_F(JobFiles, OnlyComments) {
  EXPECT_EQ(error_of(write("jobs/a", "# nothing yet\n")).code(), Code::kMissingField);
}

TEST_F(JobFiles, TooLarge) {
  EXPECT_THAT(error_of(write("jobs/large", std::string(3 << 20, '\n'))).cause(),
              HasSubstr("larger than 1 MiB"));
  EXPECT_EQ(error_of("/dev/zero").code(), Code::kSyntax);
}

TEST_F(JobFiles, InputsAreBesideTheJobFirst) {
  std::string path = write("jobs/j", with("/c.txt", "c.txt"));
  write("here/c.txt", "from here");
  EXPECT_EQ(load_job(path).job.data.corpus, (dir_ / "here/c.txt").string()) << "only there";
  write("jobs/c.txt", "beside");
  EXPECT_EQ(load_job(path).job.data.corpus, (dir_ / "jobs/c.txt").string());
  EXPECT_EQ(load_job("../jobs/j").job.data.corpus, (dir_ / "jobs/c.txt").string()) << "a relative job path";
}

TEST_F(JobFiles, ExamplesFindTheirCorpusFromAnywhere) {
  Job job = read_job(HYPERRUN_SOURCE_DIR "/examples/quickstart.textproto");
  EXPECT_EQ(job.data.corpus, HYPERRUN_SOURCE_DIR "/data/king-james.txt");
}

TEST_F(JobFiles, MissingInputsAreAllNamed) {
  std::string text = with("/c.txt\"", "c.txt\" tokenizer: \"jobs\"");
  LoadedJob loaded = load_job(write("jobs/j", text));
  fs::create_directories(dir_ / "jobs/jobs");
  loaded = load_job((dir_ / "jobs/j").string());
  try {
    check_inputs(loaded);
    FAIL();
  } catch (const JobError& e) {
    EXPECT_EQ(e.code(), Code::kMissingFile);
    EXPECT_EQ(e.place(), (dir_ / "jobs/j").string() + ":17:8");
    ASSERT_EQ(e.all().size(), 2u);
    EXPECT_THAT(e.all()[0].cause(), HasSubstr("there is no " + (dir_ / "jobs/c.txt").string()));
    EXPECT_THAT(e.all()[1].cause(), HasSubstr("is a directory"));
  }
}

// Device 3 of 4 and step 10 of 10 are the last.
TEST_F(JobFiles, FaultsThatCannotHappenAreRefused) {
  write("jobs/c.txt", "text");
  const auto check = [&](const std::string& fault) {
    std::string text = with("/c.txt\"", "c.txt\"");
    text.replace(text.find("run {"), 5, "run { chaos { fault { " + fault + " } }");
    check_inputs(load_job(write("jobs/j", text)));
  };
  for (const char* fault :
       {"device: 3 step: 10", "kind: \"full_disk\" step: 4 saving: true", "step: 4 for_good: true back: 5"})
    EXPECT_NO_THROW(check(fault)) << fault;
  for (const auto& [fault, cause] : {std::pair{"device: 4", "there is no device 4 of 4"},
                                     {"step: 11", "step 11 is behind the last of 10"},
                                     {"kind: \"full_disk\" step: 4", "only a checkpoint needs the disk"},
                                     {"step: 4 for_good: true back: 4", "back at step 4"}})
    EXPECT_ERROR(check(fault), Code::kBadValue, "jobs/j:24:", cause);
}

TEST_F(JobFiles, PresentInputsPass) {
  write("jobs/c.txt", "text");
  write("jobs/tok.json", "{}");
  fs::create_directories(dir_ / "here/ckpt");
  std::string text = with("/c.txt\"", "c.txt\" tokenizer: \"tok.json\"");
  text.replace(text.find("run {"), 5, "run { resume: \"ckpt\"");
  LoadedJob loaded = load_job(write("jobs/j", text));
  EXPECT_EQ(loaded.job.run.resume, (dir_ / "here/ckpt").string());
  EXPECT_NO_THROW(check_inputs(loaded));
}

}  // namespace
}  // namespace hyperrun
