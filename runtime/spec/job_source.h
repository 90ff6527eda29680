// The place of each field in the text of a job, so that any later error can point at the user's line.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun {

// A position in a text, counted from 1; the column is in bytes. {0, 0} in a binary job.
struct Position {
  int line = 0;
  int column = 0;
  std::string file = {};  // if it is not the job's: one that the job takes fields from

  bool operator==(const Position&) const = default;
};

// The source of a job. Field paths follow proto/job.proto: "training.batch", "parallel.mesh[0].size".
struct JobSource {
  std::string path;                                     // as the user gave it
  std::map<std::string, Position, std::less<>> fields;  // the fields that the job sets

  bool has(std::string_view field) const { return fields.contains(field); }

  // The place of a field, "job.textproto:12:3". A field that the job leaves out has the place of the
  // innermost block around it that the job has, else that of the file. In a binary job: "job.pb:
  // training.batch".
  std::string place(std::string_view field) const;
};

// Replaces a field ("supernode.hbm") as an error's place by the line of the job, because later phases do not
// know the file. Errors with other places are returned unchanged.
Error at_job_line(Error error, const JobSource& source);

}  // namespace hyperrun
