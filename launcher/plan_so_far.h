// The ranking of a search that is not finished, for those who interrupt it.
#pragma once

#include <mutex>
#include <optional>

#include "launcher/commands.h"
#include "runtime/plan/search.h"
#include "runtime/report/plan/text.h"

namespace hyperrun {

class PlanSoFar {
 public:
  PlanSoFar(const PlanArguments& arguments, const Job& job, const Space& space);

  // The searching thread calls it. The best so far is written where the best is to be.
  void keep(const Search& so_far);
  // Another thread calls it. It prints the ranking so far, and says that it is not whole.
  void tell_of_interruption() const;

 private:
  std::string known() const;

  const PlanArguments& arguments_;
  const Job& job_;
  const Space& space_;
  mutable std::mutex mutex_;
  std::optional<Search> search_;  // that has found something
  std::optional<Strategy> written_;
};

}  // namespace hyperrun
