// Answers of `hyperrun plan` as text, JSON, CSV and SVG.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/choice_ablation.h"
#include "runtime/plan/fusion.h"
#include "runtime/plan/pareto.h"
#include "runtime/plan/robust.h"
#include "runtime/plan/search.h"
#include "runtime/plan/sensitivity.h"
#include "runtime/report/plan/proof.h"

namespace hyperrun {

// The job's own parallelism, simulated.
struct OwnStrategy {
  SimulatedCandidate leader;
  bool in_space = false;  // it is a strategy of the space
};

// The best strategy of another space, if something fits.
struct BestOf {
  std::string_view space;
  std::optional<SimulatedCandidate> leader;
  bool is_empty = false;  // no strategy meets the constraints
};

// All answers to one command.
struct PlanAnswers {
  const Job& job;
  const Space& space;
  const Search& search;  // with at least one simulated leader
  std::vector<BestOf> others;
  std::optional<OwnStrategy> own;
  std::vector<Verdict> why;  // empty: not asked for
  Fusion fusion;             // of the best strategy
  std::optional<Front> front;
  std::optional<std::vector<WhatIf>> what_ifs;
  std::optional<Proof> proof;
  std::optional<Robustness> robust;
  std::string_view interrupted = {};  // the question that was not finished
};

// JSON of a command that was interrupted before it had a result.
std::string interrupted_json(std::string_view what);

// True if a certified gap is at most 100 %. Other gaps are left out of every answer: text says so in words,
// JSON has null, CSV an empty field.
bool is_informative(double gap);
std::string gap_text(double gap);
// One sentence on how much faster the best of all can be.
std::string certificate_text(const Search& search);
std::string percent_text(double share);  // "12.3 %"
std::string time_text(double nanos);
std::string_view pass_text(Pass pass);

// Counts, the ranking with `most_rows` rows, and the certificate.
std::string search_text(const Search& search, std::size_t most_rows);
// The job's own parallelism compared with the best.
std::string own_text(const OwnStrategy& own, const SimulatedCandidate& best);
// The verdict on each value of each dimension.
std::string why_text(const std::vector<Verdict>& why);
// Location of the best strategy's axes, and what they move together.
std::string fusion_text(const Fusion& fusion);
std::string front_text(const Front& front);
std::string what_if_text(const std::vector<WhatIf>& list);
// Speed-up of the first over the best of each other space.
std::string comparison_text(const std::vector<BestOf>& others, const SimulatedCandidate& best);
// The reason why a space has no best.
std::string_view why_none(const BestOf& other);

std::string plan_json(const PlanAnswers& answers);
// One table for each answer, separated by blank lines.
std::string plan_csv(const PlanAnswers& answers);
std::string plan_svg(const PlanAnswers& answers);

}  // namespace hyperrun
