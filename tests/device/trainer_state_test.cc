// The state of a training beside its weights: ours, that of earlier versions, and that of Hugging Face's
// Trainer.
#include "runtime/device/trainer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

class TrainerStateFile : public ::testing::Test {
 protected:
  void put(const char* name, const std::string& text) { put_file(dir_ / name, text); }
  TrainerState read() const { return read_trainer_state(dir_.path()); }

  const TemporaryDirectory dir_;
};

TEST_F(TrainerStateFile, ComesBackAsItWas) {
  const TrainerState state{.next_step = 7,
                           .seed = std::numeric_limits<std::uint64_t>::max(),
                           .next_sample = 29,
                           .with = TrainedWith{100, 4, 10, 3e-4, 3e-5, 48}};
  put(kTrainerStateFile, to_json(state));
  EXPECT_EQ(read(), state);
  EXPECT_EQ(steps_of_foreign_trainer(dir_.path()), std::nullopt);
}

TEST_F(TrainerStateFile, OfAnEarlierVersionHasFewerFieldsAndAnotherName) {
  put("trainer_state.json", R"({"next_step": 3, "seed": 5})");
  EXPECT_EQ(read(), (TrainerState{.next_step = 3, .seed = 5}));
  put("trainer_state.json", R"({"seed": 5})");
  EXPECT_ERROR(read(), Code::kBadCheckpoint, "trainer_state.json: next_step", "missing");
}

TEST_F(TrainerStateFile, OfHuggingFacesTrainerIsNotOurs) {
  put("trainer_state.json", R"({"best_metric": null, "epoch": 1.25, "global_step": 500, "log_history": []})");
  EXPECT_EQ(read(), TrainerState{});
  EXPECT_EQ(steps_of_foreign_trainer(dir_.path()), 500);
  put(kTrainerStateFile,
      to_json({.next_step = 7, .seed = 1}));  // the folder is ours in spite of the other file
  EXPECT_EQ(read().next_step, 7);
  EXPECT_EQ(steps_of_foreign_trainer(dir_.path()), std::nullopt);
}

TEST_F(TrainerStateFile, WrongFieldsAreNamed) {
  for (const auto& [text, place] :
       {std::pair{R"({"next_step": -5})", "next_step"},
        {R"({"next_step": 5, "next_sample": -1})", "next_sample"},
        {R"({"next_step": 5, "seed": "x"})", "seed"},
        {R"({"next_step": 5, "trained_with": {"steps": 1e9}})", "trained_with: steps"},
        {R"({"next_step": 5, "trained_with": {"steps": 9, "batch": 4294967296}})", "trained_with: batch"}}) {
    put(kTrainerStateFile, text);
    EXPECT_ERROR(read(), Code::kBadCheckpoint, std::string(kTrainerStateFile) + ": " + place, "");
  }
}

}  // namespace
}  // namespace hyperrun::testing
