// What controller and devices of a run agree on beyond runtime/control: numbers of programs and scalars.
#pragma once

#include <cstdint>

namespace hyperrun {

// Invocations name programs by session and place in its plan: session * kProgramsOfASession + place.
inline constexpr std::int32_t kProgramsOfASession = 1 << 12;

// These are the device's own, in each session.
inline constexpr std::int32_t kSaveProgram = 1000;         // state to <run directory>/checkpoints/step-<step>
inline constexpr std::int32_t kLoadProgram = 1001;         // state from job.run.resume
inline constexpr std::int32_t kLoadWeightsProgram = 1002;  // weights alone

// Scalars of an invocation.
inline constexpr const char* kLearningRate = "lr";
inline constexpr const char* kTraced = "traced";
inline constexpr const char* kSlot = "slot";                   // of ports
inline constexpr const char* kOtherSquares = "other_squares";  // of the gradients of other programs
inline constexpr const char* kDilation = "dilation";           // of the paced clock; none: native

}  // namespace hyperrun
