// The file of a checkpoint that has what is neither weights nor moments: hyperrun_state.json. Earlier
// versions called it trainer_state.json, which is also a file of Hugging Face's Trainer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace hyperrun {

// The settings of a training on which learning rates and samples of its steps depend.
struct TrainedWith {
  std::int32_t steps = 0, batch = 0, warmup_steps = 0;
  double lr = 0, min_lr = 0;
  std::int32_t sequence = 0;

  bool operator==(const TrainedWith&) const = default;
};

struct TrainerState {
  std::int64_t next_step = 0;
  std::optional<std::uint64_t> seed;        // nullopt: another program's checkpoint
  std::optional<std::int64_t> next_sample;  // samples of all steps so far; nullopt: an earlier version's file
  std::optional<TrainedWith> with;          // nullopt: the same

  bool operator==(const TrainerState&) const = default;
};

std::string to_json(const TrainerState& state);

// Reads the file in the checkpoint `directory`; step 0 if there is none (another program's checkpoint).
// Throws kBadCheckpoint.
TrainerState read_trainer_state(const std::filesystem::path& directory);

// The number of steps of a training by Hugging Face's Trainer, if `directory` has its state. That state is
// not ours: its optimizer and schedule are not read.
std::optional<std::int64_t> steps_of_foreign_trainer(const std::filesystem::path& directory);

inline constexpr const char* kTrainerStateFile = "hyperrun_state.json";

// The file of a checkpoint of several programs that has what is in no program's state: programs_state.h of
// runtime/run.
inline constexpr const char* kProgramsStateFile = "programs_state.json";

}  // namespace hyperrun
