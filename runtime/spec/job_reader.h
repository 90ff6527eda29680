// Reads a job to plain values, checks it and fills in defaults. Its content says whether it is text or
// binary. proto/job.proto is the schema; docs/job.md explains it to users.
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

// All errors of a job together. As an Error it is the first of them; what() shows all.
class JobError : public Error {
 public:
  explicit JobError(std::vector<Error> all);  // at least one

  const std::vector<Error>& all() const { return all_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::vector<Error> all_;
  std::string text_;
};

// Throws JobError if there are errors.
void throw_if_any(std::vector<Error> errors);

// Reads a job file. Input paths (model.from, supernode.profile, data.corpus, data.tokenizer, data.tasks,
// run.resume) become absolute: relative ones are looked up beside the job file, then in the working
// directory; one found in neither is taken as beside the job. check_inputs() checks that they exist. Throws
// JobError (kSyntax, kUnknownField, kMissingField, kBadValue, kBadLayout), or Error(kMissingFile) when the
// job itself cannot be read.
LoadedJob load_job(const std::string& path, JobUse use = JobUse::kAsItIs);

// The same for a job in memory; `path` names it in messages, and its relative paths start there.
LoadedJob parse_job(std::string_view content, const std::string& path, JobUse use = JobUse::kAsItIs);

Job read_job(const std::string& path);

// Throws kBadValue if the job has several programs; for callers that take only one.
void refuse_programs(const LoadedJob& loaded);

// Throws kBadValue if layers differ otherwise than by experts behind dense layers; for the planner, which
// forecasts a model from a few of its layers.
void refuse_uneven_layers(const LoadedJob& loaded);

// The bytes of a job, or of a file that it names. Throws kMissingFile.
std::string read_job_file(const std::string& path);

// The absolute path of an input of a job: beside the job, else in the working directory.
std::string resolve_input(const std::string& input, const std::string& job_path);

// Throws JobError: kMissingFile unless the corpus, the tokenizer and the checkpoint that the job names
// exist, and (kBadValue) faults of run.chaos can happen. Callers check this before they start anything.
void check_inputs(const LoadedJob& loaded);

}  // namespace hyperrun
