// The largest sizes of a model, in a job (docs/job.md) and in a checkpoint's config.json. A larger size is a
// slip of the pen; without a limit it would take endless memory and time before anything else refused it.
#pragma once

#include <cstdint>

namespace hyperrun::limits {

inline constexpr std::int32_t kLayers = 4096;
inline constexpr std::int32_t kHidden = 1 << 20;
inline constexpr std::int32_t kHeads = 4096;
inline constexpr std::int32_t kHeadDim = 1 << 16;
inline constexpr std::int32_t kFfn = 1 << 22;
inline constexpr std::int32_t kVocab = 1 << 22;
inline constexpr std::int32_t kSequence = 1 << 24;
inline constexpr std::int32_t kExperts = 4096;
inline constexpr std::int32_t kSharedExperts = 64;
inline constexpr std::int32_t kRank = 1 << 20;  // width of compressed queries, keys and values
inline constexpr std::int32_t kMtpLayers = 16;
inline constexpr std::int32_t kTiles = 64;  // tiles of rows

}  // namespace hyperrun::limits
