// The tensors by which a checkpoint and a model differ, and a guess why.
#pragma once

#include <string>
#include <vector>

namespace hyperrun {

struct Mismatch {
  std::string path;                  // of the checkpoint
  std::vector<std::string> missing;  // tensors that the model has alone
  std::vector<std::string> surplus;  // tensors that the checkpoint has alone

  // Throws kBadCheckpoint at the first of the tensors, if there is any.
  void refuse() const;
};

}  // namespace hyperrun
