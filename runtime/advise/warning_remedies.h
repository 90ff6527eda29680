// Remedies for warnings, as lines to paste. Each was tried: the changed job and its layouts are legal.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "runtime/advise/fit_effort.h"
#include "runtime/base/time_limit.h"
#include "runtime/ir/graph.h"
#include "runtime/ir/mesh.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

// A training: a whole job, or one program of a job, which is checked as a whole.
class Training {
 public:
  explicit Training(const LoadedJob& loaded);
  Training(const LoadedJob& loaded, std::size_t program);

  const Job& job() const { return job_; }
  std::string place(std::string_view field) const { return source_.place(field); }
  bool has(std::string_view field) const { return source_.has(field); }
  std::string lines_to(const Job& changed) const;
  // The sharded graph of the changed job; nullopt if the job is illegal, or the time for trying is over: then
  // is_cut_off() is true.
  std::optional<Graph> shard_changed(Job changed) const;
  bool is_cut_off() const { return TimeLimit::Clock::now() > end_; }

 private:
  bool is_legal(const Job& changed) const;

  const LoadedJob& loaded_;
  std::optional<std::size_t> program_;
  Job job_;
  JobSource source_;
  TimeLimit::Clock::time_point end_ = TimeLimit::Clock::now() + kMostTime;
};

// How devices along an idle axis get work of their own. `sharded`: the unchanged training.
std::string remedy_of_idle(const Training& training, const Graph& sharded, AxisId axis);
// The number of micro-batches that fills a pipeline of `devices` stages, and how long devices wait then.
std::string remedy_of_waiting(const Training& training, const Graph& sharded, int devices);

}  // namespace hyperrun
