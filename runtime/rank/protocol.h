// The protocol between controller and devices of a run, above runtime/control: the numbers of Programs and
// the names of scalars.
#pragma once

#include <cstdint>

namespace hyperrun {

// The number of a Program in an invocation is session * kProgramsOfASession + its index in the session's
// plan.
inline constexpr std::int32_t kProgramsOfASession = 1 << 12;

// Indices of the Programs that every session has without being in its plan.
inline constexpr std::int32_t kSaveProgram = 1000;  // saves state to <run directory>/checkpoints/step-<step>
inline constexpr std::int32_t kLoadProgram = 1001;  // loads state from job.run.resume
inline constexpr std::int32_t kCopyProgram = 1003;  // copies state to the memory of the host of device 0
inline constexpr std::int32_t kLoadWeightsProgram = 1002;  // loads only the weights from there
inline constexpr std::int32_t kCompareProgram = 1003;      // reports hashes of its state (state_hashes.h)

// A checkpoint of several sessions. Device 0 of one of them begins it and ends it; in between each session
// saves its part. The checkpoint appears at its end, as a whole.
inline constexpr std::int32_t kBeginCheckpointProgram = 1003;
inline constexpr std::int32_t kSavePartProgram = 1004;  // data: the part's folder, "." for the checkpoint's
inline constexpr std::int32_t kEndCheckpointProgram = 1005;  // data: content of kProgramsStateFile

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
