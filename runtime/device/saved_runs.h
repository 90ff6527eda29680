// A state tensor and the tensors of a checkpoint that have its elements (SavedAs).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// Of the tensors in the checkpoint, one a slice.
std::vector<std::string> saved_names(const SavedAs& saved);

// Bytes that follow one another both in the whole tensor and in the checkpoint's.
struct SavedRun {
  std::size_t slice = 0;   // in which of the checkpoint's tensors,
  std::int64_t there = 0;  // from which of its bytes on
  std::size_t ours = 0;    // from which byte of the whole tensor on
  std::int64_t bytes = 0;
};

// All of `t`, in the order of its own elements.
std::vector<SavedRun> saved_runs(const StateTensor& t);

}  // namespace hyperrun
