// hyperrun verify, as a user calls it.
#include <gmock/gmock.h>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Verify, SumsUpWhatItCompared) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun({"verify", workspace.job(), "--steps", "1"}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, AllOf(HasSubstr("tiny: mesh dp=2, presets dp, beside one device; seed 1, steps 1\n"),
                           HasSubstr("activations"), HasSubstr("gradients"), HasSubstr("weights"),
                           HasSubstr("optimizer"), HasSubstr("\nequal: ")));
  EXPECT_FALSE(std::filesystem::exists(workspace / "out")) << "it is no run";
}

TEST(Verify, NeedsNoCorpus) {
  const Workspace workspace;
  const std::string job = workspace.job();
  std::filesystem::remove(workspace / "corpus.txt");
  EXPECT_THAT(workspace.run(hyperrun({"verify", job, "--steps", "1"})), Succeeded());
}

TEST(Verify, DrawsLayoutsAndModels) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun({"verify", "--random", "2", "--seed", "3"}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out,
              AllOf(HasSubstr("1 of 2, seed 3: equal, "), HasSubstr("; name: \"random-3\" supernode {"),
                    HasSubstr("2 of 2, seed 4: equal, "), HasSubstr("\nequal: 2 layouts, ")));
  const Finished again = workspace.run(hyperrun({"verify", "--random", "1", "--seed", "4"}));
  const std::string line = f.out.substr(f.out.find("seed 4"));
  EXPECT_THAT(again.out, HasSubstr(line.substr(0, line.find('\n')))) << "a seed alone repeats its layout";
}

// A printed job line reproduces the job.
TEST(Verify, ALineCanBeGivenAgain) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun({"verify", "--random", "1", "--seed", "2"}));
  ASSERT_THAT(f, Succeeded()) << f;
  const std::size_t begin = f.out.find("name: ");
  const std::string job =
      workspace.job(f.out.substr(begin, f.out.find('\n', begin) - begin), "again.textproto");
  const Finished again = workspace.run(hyperrun({"verify", job}));
  ASSERT_THAT(again, Succeeded()) << again;
  const std::size_t values = f.out.find("equal, ") + 7;
  EXPECT_THAT(again.out, HasSubstr("equal: " + f.out.substr(values, f.out.find(" values") - values)));
}

TEST(Verify, DrawsLayoutsOfAJob) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun({"verify", workspace.job(), "--random", "2"}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, AllOf(HasSubstr("name: \"tiny-random-2\""), HasSubstr("\nequal: 2 layouts, ")));
  EXPECT_THAT(files_below(workspace / "."), ::testing::Each(::testing::Not(HasSubstr("random"))));
}

}  // namespace
}  // namespace hyperrun::testing
