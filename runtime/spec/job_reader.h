// Reads a job: text or binary (told apart by content) to plain values, validated, defaults filled in.
// proto/job.proto is the schema; docs/job.md explains it to users.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_check.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

struct LoadedJob {
  Job job;
  JobSource source;
};

// Everything found wrong with a job at once. As an Error it is the first of them; what() shows all.
class JobError : public Error {
 public:
  explicit JobError(std::vector<Error> all);  // at least one

  const std::vector<Error>& all() const { return all_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::vector<Error> all_;
  std::string text_;
};

// Throws JobError unless there are none.
void throw_if_any(std::vector<Error> errors);

// Input paths (supernode.profile, data.corpus, data.tokenizer, data.tasks, run.resume) come out absolute:
// relative ones are looked up beside the job file, then in the working directory; one found in neither is
// taken as beside the job. Throws JobError (kSyntax, kUnknownField, kMissingField, kBadValue, kBadLayout), or
// Error(kMissingFile) when the job itself cannot be read. Whether inputs exist is left to check_inputs.
LoadedJob load_job(const std::string& path, JobUse use = JobUse::kAsItIs);

// The same, from memory; `path` names the job in messages and is where its relative paths start.
LoadedJob parse_job(std::string_view content, const std::string& path, JobUse use = JobUse::kAsItIs);

Job read_job(const std::string& path);

// Throws kBadValue where the job has several programs: for those who take one.
void refuse_programs(const LoadedJob& loaded);

// The bytes of a job or of what it names. Throws kMissingFile.
std::string read_job_file(const std::string& path);

// An input path of a job, absolute: beside the job, else in the working directory.
std::string resolve_input(const std::string& input, const std::string& job_path);

// Throws JobError (kMissingFile) unless the corpus, the tokenizer and the checkpoint that the job names
// are there: the first thing to ask before anything is started.
void check_inputs(const LoadedJob& loaded);

}  // namespace hyperrun
