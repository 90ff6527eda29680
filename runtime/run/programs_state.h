// The file of a checkpoint of several programs, programs_state.json: what a run needs to go on besides the
// weights and moments of its programs. All else follows from the job: what is drawn depends on the seed, a
// completion's number and a position alone.
//
//   checkpoints/step-000010/   of rewards: the learner's files, and reference/ with the weights of the
//   program
//                              that scores; with encoders: a folder for each program
//                           programs_state.json
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/reinforce/experience.h"

namespace hyperrun {

// A batch of completions that was drawn and not yet learned from.
struct QueuedBatch {
  std::int64_t step = 0;     // the step that is to learn from it
  std::int64_t version = 0;  // version of the oldest weights that it was drawn with
  std::vector<Completion> completions;
  std::vector<float>
      reference;  // reference log probabilities, [completion, position]; empty: none are needed

  bool operator==(const QueuedBatch&) const = default;
};

inline constexpr const char* kOfRewards = "reinforcement";
inline constexpr const char* kOfEncoders = "omni";
inline constexpr const char* kReferencePart = "reference";

struct ProgramsState {
  std::string kind;  // kOfRewards or kOfEncoders
  std::int64_t next_step = 0;
  std::uint64_t seed = 0;
  std::int64_t batch = 0;           // samples or completions of a step
  std::int64_t evaluated = -1;      // number of steps before the last evaluation; -1: there was none
  std::vector<std::string> parts;   // folders of programs; with rewards, those beside the learner
  std::int64_t samples = 0;         // of rewards: completions of a prompt
  std::vector<QueuedBatch> queued;  // of rewards: in the order of their steps, from next_step on

  bool operator==(const ProgramsState&) const = default;
};

std::string to_json(const ProgramsState& state);

// Reads the file in the checkpoint `directory`; nullopt if there is none, as in the checkpoint of a training.
// Throws kBadCheckpoint.
std::optional<ProgramsState> read_programs_state(const std::filesystem::path& directory);

// The state from which the job goes on; nullopt if job.run.resume has only weights to begin with: it is
// empty, or a checkpoint of a training or of another program. Throws kBadCheckpoint if it is of another kind
// of job than `kind`, kBadValue if seed, batch or samples are others or no steps are left to do. `parts` are
// those that the job needs. `works_after_steps`: there is something left to do after the last step.
std::optional<ProgramsState> state_to_resume(const Job& job, const std::string& kind,
                                             const std::vector<std::string>& parts, bool works_after_steps);

// A line that says after which step a run goes on, and from where.
std::string describe_resumed(const Job& job, const ProgramsState& state);

}  // namespace hyperrun
