// Converts sessions, which each device gets once, to bytes and back.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// A plan and everything it needs to run. A job of several programs has a session for each.
struct Session {
  std::string name;        // the program's name, in a job of several programs
  std::vector<int> ranks;  // ranks of the plan's devices; empty: all, in order
  Job job;
  Plan plan;
  std::optional<Plan> original;  // to scale: each instruction takes as long as that of this plan
  std::string run_directory;
  std::string tokens;  // file of the corpus's tokens (int32 in the host's byte order); only rank 0 reads it
  std::int64_t first_step = 0;  // the step at which the run begins
  std::int64_t first_sample =
      0;  // the number of its first sample, counted from the beginning of the training
  std::vector<std::int32_t> prompt;
  std::map<std::string, std::string> checkpoint_files;  // further files of each checkpoint, by name

  const Plan& pace() const { return original ? *original : plan; }

  bool operator==(const Session&) const = default;
};

std::string to_bytes(std::span<const Session> sessions);

// Throws kControl with `place` when the bytes are no Sessions of this version.
std::vector<Session> sessions_from_bytes(std::string_view bytes, const std::string& place);

}  // namespace hyperrun
