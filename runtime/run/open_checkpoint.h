// A checkpoint of several programs that is begun and not yet ended. Each program copies its part and goes on
// with the next step; the checkpoint ends behind that step, once all parts are written:
//
//   begin | save parts | step | await parts | end | step
//
// The last checkpoint ends before the run does: its parts are saved and written at once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace hyperrun {

class OpenCheckpoint {
 public:
  // After `step` steps. `state`: the content of programs_state.json. `beside`: parts are written beside the
  // next step.
  OpenCheckpoint(std::int64_t step, std::string state, bool beside)
      : step_(step), state_(std::move(state)), beside_(beside) {}

  std::int64_t step() const { return step_; }
  bool beside() const { return beside_; }

  // A device knows how the writing of its part ended. `problem`: why it is not written; empty: it is.
  void part_ended(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  // The data of kEndCheckpointProgram (protocol.h). Warns if a part is missing: then there is no checkpoint.
  std::string end(const std::string& run_directory) const;

 private:
  std::int64_t step_;
  std::string state_;
  bool beside_;
  std::string problem_;
};

}  // namespace hyperrun
