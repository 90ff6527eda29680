// A state tensor, and the tensors of a checkpoint that have its elements (SavedAs).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// Names of the checkpoint's tensors, one for each slice.
std::vector<std::string> saved_names(const SavedAs& saved);

// A run of bytes that are contiguous both in the whole tensor and in the checkpoint's.
struct SavedRun {
  std::size_t slice = 0;   // index of the checkpoint's tensor
  std::int64_t there = 0;  // first byte in it
  std::size_t ours = 0;    // first byte in the whole tensor
  std::int64_t bytes = 0;
};

// All runs of `t`, in the order of its own elements.
std::vector<SavedRun> saved_runs(const StateTensor& t);

}  // namespace hyperrun
