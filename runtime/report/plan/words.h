// What `hyperrun plan` answers: for people, as JSON, as lines with commas, as a picture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/fusion.h"
#include "runtime/plan/pareto.h"
#include "runtime/plan/robust.h"
#include "runtime/plan/search.h"
#include "runtime/plan/sensitivity.h"
#include "runtime/plan/why.h"
#include "runtime/report/plan/proof.h"

namespace hyperrun {

// The job as it is written, simulated.
struct OwnStrategy {
  Leader leader;
  bool in_space = false;  // it is a strategy of the space
};

// The best of another space, where something fits.
struct BestOf {
  std::string_view space;
  std::optional<Leader> leader;
  bool is_empty = false;  // it has no strategy that is as asked
};

// All that was asked for.
struct PlanAnswers {
  const Job& job;
  const Space& space;
  const Search& search;  // it has found something
  std::vector<BestOf> others;
  std::optional<OwnStrategy> own;
  std::vector<Verdict> why;  // none: it is not told
  Fusion fusion;             // of the best
  std::optional<Front> front;
  std::optional<std::vector<WhatIf>> what_ifs;
  std::optional<Proof> proof;
  std::optional<Robustness> robust;
  std::string_view interrupted = {};  // what was not finished
};

// The JSON object of a command that was interrupted before it knew anything.
std::string interrupted_json(std::string_view what);

// Of a certificate, that nothing is faster by more than this share: beyond 100 % it says nothing. Every
// answer leaves such a share out: text has words instead, JSON null, CSV an empty field.
bool says_something(double gap);
std::string gap_words(double gap);
// How far the best of all can be, in a sentence.
std::string certificate_words(const Search& search);
std::string percent_words(double share);  // "12.3 %"
std::string describe_time(double nanos);
std::string_view pass_words(Pass pass);

// How many were looked at, the ranking, and how far the best of all can be.
std::string search_words(const Search& search, std::size_t most_rows);  // `most_rows`: of the ranking
// What the job's own parallelism takes beside the best.
std::string own_words(const OwnStrategy& own, const Leader& best);
// Of each value of each dimension: why it is the best's, or is not.
std::string why_words(const std::vector<Verdict>& why);
// Where the best's axes lie, and what they move together.
std::string fusion_words(const Fusion& fusion);
std::string front_words(const Front& front);
std::string what_if_words(const std::vector<WhatIf>& list);
// How much faster the first is than the best of each other space.
std::string comparison_words(const std::vector<BestOf>& others, const Leader& best);
// Why a space has no best.
std::string_view why_none(const BestOf& other);

std::string plan_json(const PlanAnswers& answers);
// A table for each answer, of the same numbers, with an empty line between.
std::string plan_csv(const PlanAnswers& answers);
std::string plan_svg(const PlanAnswers& answers);

}  // namespace hyperrun
