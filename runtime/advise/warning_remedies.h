// Remedies of warnings, as lines to paste. Each was tried: the job that they make is legal, and its layouts
// are.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "runtime/ir/graph.h"
#include "runtime/ir/mesh.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// A training, alone or one of the programs of a job, which is tried as a whole.
class Training {
 public:
  explicit Training(const LoadedJob& loaded);
  Training(const LoadedJob& loaded, std::size_t program);

  const Job& job() const { return job_; }
  std::string place(std::string_view field) const { return source_.place(field); }
  bool has(std::string_view field) const { return source_.has(field); }
  std::string lines_to(const Job& changed) const;
  // Sharded, where the changed job is legal.
  std::optional<Graph> tried(Job changed) const;

 private:
  bool is_legal(const Job& changed) const;

  const LoadedJob& loaded_;
  std::optional<std::size_t> program_;
  Job job_;
  JobSource source_;
};

// How the devices along an idle axis get work of their own. `sharded`: the training as it is.
std::string remedy_of_idle(const Training& training, const Graph& sharded, AxisId axis);
// As many micro-batches as a pipeline of so many devices needs, and how long they wait then.
std::string remedy_of_waiting(const Training& training, const Graph& sharded, int devices);

}  // namespace hyperrun
