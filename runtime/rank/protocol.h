// The protocol between controller and devices of a run, above runtime/control: the numbers of Programs and
// the names of scalars.
#pragma once

#include <cstdint>

namespace hyperrun {

// The number of a Program in an invocation is session * kProgramsOfASession + its index in the session's
// plan.
inline constexpr std::int32_t kProgramsOfASession = 1 << 12;

// Indices of the Programs that every session has without being in its plan.
enum : std::int32_t {
  kSaveProgram = 1000,      // saves state to <run directory>/checkpoints/step-<step>
  kLoadProgram,             // loads state from job.run.resume
  kLoadWeightsProgram,      // loads only the weights from there
  kCopyProgram,             // copies state to the memory of the host of device 0
  kCompareProgram,          // reports hashes of its state (state_hashes.h)
  kBeginCheckpointProgram,  // the checkpoint of several programs: one device opens it,
  kSavePartProgram,         // each saves its part (data: the part's folder, "." for the checkpoint's),
  kAwaitPartProgram,        // waits until it is written (result: why it is not, empty if it is),
  kEndCheckpointProgram     // and the device that opened it ends it (data: content of kProgramsStateFile;
                            // empty: a part is missing, and nothing stays)
};

// Names of the scalars of an invocation.
inline constexpr const char* kLearningRate = "lr";
inline constexpr const char* kTraced = "traced";
// Of a save: it is done once the state is copied, and written later. Without it: once it is written.
inline constexpr const char* kBeside = "beside";
inline constexpr const char* kSlot = "slot";  // slot of the ports
inline constexpr const char* kOtherSquares =
    "other_squares";                                  // sum of the squared gradients of other programs
inline constexpr const char* kDilation = "dilation";  // dilation of the paced clock; none: native clock

}  // namespace hyperrun
