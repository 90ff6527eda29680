// What `hyperrun plan` answers: for people, as JSON, as lines with commas.
#pragma once

#include <string>

#include "runtime/base/units.h"
#include "runtime/plan/search.h"
#include "runtime/report/table.h"

namespace hyperrun {

std::string percent_words(double share);  // "12.3 %"
std::string time_words(double nanos);

// How many were looked at, the ranking, and how far the best of all can be.
std::string search_words(const Search& search);
// Of each value of each dimension: why it is the best's, or is not.
std::string why_words(const Search& search, Bytes hbm);

struct PlanAnswers {
  const Search& search;
  const Space& space;
  Bytes hbm;
};
std::string plan_json(const PlanAnswers& answers);
std::string plan_csv(const Search& search);

}  // namespace hyperrun
