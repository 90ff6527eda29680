// Where each field of a job was written, so that any later error can point at the user's line.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun {

// Counted from 1; column in bytes, as compilers and editors do. {0, 0} in a binary job.
struct Position {
  int line = 0;
  int column = 0;

  bool operator==(const Position&) const = default;
};

// Field paths are those of proto/job.proto: "training.batch", "parallel.mesh[0].size", "parallel.mesh".
struct JobSource {
  std::string path;                                     // as the user gave it
  std::map<std::string, Position, std::less<>> fields;  // the fields that the job sets

  bool has(std::string_view field) const { return fields.contains(field); }

  // "job.textproto:12:3". A field that the job leaves out is placed at the innermost block around it
  // that the job has; with none, at the file. In a binary job: "job.pb: training.batch".
  std::string place(std::string_view field) const;
};

// Later phases know no file and name the field ("supernode.hbm") as an error's place: this puts the
// job's line in its stead. Errors placed elsewhere come back as they are.
Error at_job_line(Error error, const JobSource& source);

}  // namespace hyperrun
