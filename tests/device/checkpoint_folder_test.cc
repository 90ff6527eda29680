// Which checkpoints of a run stay, and how the others go.
#include "runtime/device/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KeptCheckpoints, AreTheLastAndThoseOfMultiples) {
  const std::vector<std::int64_t> steps{50, 10, 40, 20, 30};
  EXPECT_THAT(superfluous(steps, {}), IsEmpty());
  EXPECT_THAT(superfluous(steps, {.last = 0, .every = 20}), IsEmpty()) << "all stay";
  EXPECT_THAT(superfluous(steps, {.last = 2}), ElementsAre(10, 20, 30));
  EXPECT_THAT(superfluous(steps, {.last = 2, .every = 20}), ElementsAre(10, 30));
  EXPECT_THAT(superfluous(steps, {.last = 5}), IsEmpty());
  EXPECT_THAT(superfluous(steps, {.last = 9}), IsEmpty());
}

TEST(KeptCheckpoints, OthersAreRemovedAndWhatIsNoCheckpointStays) {
  const TemporaryDirectory directory;
  const fs::path folder = directory / "checkpoints";
  for (const char* name : {"step-000010", "step-000020", "step-000030", "mine", ".step-000005.partial"}) {
    fs::create_directories(folder / name);
    std::ofstream(folder / name / "model.safetensors") << "content";
  }
  remove_superfluous(folder, {.last = 1});
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("step-000030", "mine", ".step-000005.partial"));
  EXPECT_NO_THROW(remove_superfluous(directory / "absent", {.last = 1}));
}

TEST(CheckpointName, TellsItsStep) {
  EXPECT_EQ(checkpoint_name(400), "step-000400");
  EXPECT_EQ(saved_step("runs/a/checkpoints/" + checkpoint_name(400)), 400);
  EXPECT_EQ(saved_step(".step-000400.partial"), -1);
  EXPECT_EQ(saved_step(""), -1);
}

}  // namespace
}  // namespace hyperrun::testing
