// A job's state to and from a checkpoint directory, independent of the layout in memory:
//
//   model.safetensors      weights, whole, under Hugging Face's names
//   optimizer.safetensors  moments, "NAME.adam_m" and "NAME.adam_v"
//   hyperrun_state.json    the next step and sample, the seed (trainer_state.h)
//
// Device 0 reads and writes. Parts travel in pieces between it and the others, through the arena's space
// above the state. The operations are collective over all devices. The directory appears whole or not at all.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "runtime/device/device_memory.h"
#include "runtime/device/plan_world.h"
#include "runtime/device/trainer_state.h"
#include "runtime/ir/program.h"

namespace hyperrun {

struct StateContext {
  const Plan& plan;
  DeviceMemory memory;
  PlanWorld world;
  Group& everyone;  // all devices of the plan, in order
};

// The parts of a checkpoint besides the state of the devices.
struct Unsplit {
  TrainerState trainer;
  std::map<std::string, std::string> files;  // by name: config.json, tokenizer.json
};

// Saves the state while no device does anything else (state_saver.h saves beside the steps). Throws
// kUnwritable on device 0, once all devices have taken part.
void save_state(const StateContext& context, const std::filesystem::path& directory, const Unsplit& unsplit);

// Writes what is not split among devices. Throws kUnwritable.
void write_unsplit(const std::filesystem::path& directory, const Unsplit& unsplit);

// Saves the state as a part of a checkpoint: `directory` lies in one that appears at once, and is filled in
// place. A plan without moments has no file of them.
void save_part(const StateContext& context, const std::filesystem::path& directory, const Unsplit& unsplit);

// Loads the state. Without optimizer.safetensors (another program's checkpoint) the moments stay as they are.
// Throws kMissingFile or kBadCheckpoint on device 0.
void load_state(const StateContext& context, const std::filesystem::path& directory);

// Loads the weights alone.
void load_weights(const StateContext& context, const std::filesystem::path& directory);

// Throws kBadCheckpoint or kMissingFile unless `directory` has every tensor of the plan in its shape, and no
// other.
void check_state(const Plan& plan, const std::filesystem::path& directory);

// Checks the weights alone, which may be another program's checkpoint.
void check_weights(const Plan& plan, const std::filesystem::path& directory);

// True if it has the moments of the plan's optimizer: all of them, or none.
bool has_moments(const Plan& plan, const std::filesystem::path& directory);

}  // namespace hyperrun
