// The ranking of an unfinished search, to be printed if the user interrupts it.
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

  // Keeps a copy of the search, and writes its best plan to the file of --out. The searching thread calls it.
  void keep(const Search& so_far);
  // Prints the ranking so far, and says that it is incomplete. Another thread calls it.
  void print_interrupted() const;

 private:
  std::string describe() const;

  const PlanArguments& arguments_;
  const Job& job_;
  const Space& space_;
  mutable std::mutex mutex_;
  std::optional<Search> search_;  // set once a plan that fits has been simulated
  std::optional<Strategy> written_;
};

}  // namespace hyperrun
