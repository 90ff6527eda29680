// Questions about a plan besides the ranking, answered one after the other. Each answer is told as soon as
// it is known, and one that finds a faster plan says so.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands.h"
#include "runtime/plan/search.h"
#include "runtime/report/plan/text.h"
#include "runtime/report/status_line.h"

namespace hyperrun {

class PlanQuestions {
 public:
  // `answers` are those of `search`, which has found something.
  PlanQuestions(const PlanArguments& arguments, Search& search, PlanAnswers& answers);

  // All but the proof. Text goes to standard output; files are written, and written again where the first
  // changes.
  void ask_all();
  // Whatever is known when the work is interrupted, from another thread.
  void tell_of_interruption() const;
  // Executes the plans by a run of its own, which ends the process where it is interrupted.
  void prove();
  // The answers for programs that read them. Empty where people are told.
  std::string for_programs() const;

 private:
  struct Question {
    std::string name;
    std::function<std::string()> answer;
  };

  std::vector<Question> asked();
  void begin(const std::string& question);
  std::string own();
  std::string why();
  std::string front();
  std::string what_ifs();
  std::string others();
  std::string trust();
  void know(const std::string& text, const std::string& next);
  std::string changes_of_the_first();
  void write_files();

  const PlanArguments& arguments_;
  Search& search_;
  PlanAnswers& answers_;
  StatusLine status_;
  std::optional<Strategy> told_first_, written_first_;
  mutable std::mutex mutex_;
  std::string for_programs_, unanswered_;
};

// Tells those who wait what is being done.
Progress telling(StatusLine& status);
// `so_far`: as SearchOptions have it.
Search searched(const Job& job, const PlanArguments& arguments, const Space& space, StatusLine& status,
                std::function<void(const Search&)> so_far = {});

}  // namespace hyperrun
