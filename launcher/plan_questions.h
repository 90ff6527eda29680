// The questions that `hyperrun plan` answers: the ranking, and what options such as --why and --pareto ask.
// They are answered one after the other. Each answer is printed as soon as it is known; an answer that finds
// a faster plan says so.
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
  // `answers` refers to `search`, which has found at least one plan. All arguments must outlive the object.
  PlanQuestions(const PlanArguments& arguments, Search& search, PlanAnswers& answers);

  // Answers all questions but the proof. Text goes to standard output. Files are written after the ranking,
  // and again whenever another plan takes the lead.
  void answer_all();
  // Prints the answers known so far. Another thread calls it when the work is interrupted.
  void print_interrupted() const;
  // Executes the plans in a run of its own; an interruption of that run ends the process.
  void prove();
  // The answers as JSON or CSV. Empty if the answers are printed as text for people.
  std::string machine_output() const;

 private:
  struct Question {
    std::string name;
    std::function<std::string()> answer;
  };

  std::vector<Question> list_questions();
  void set_unanswered(const std::string& question);
  std::string answer_own_strategy();
  std::string answer_why();
  std::string answer_pareto();
  std::string answer_sensitivity();
  std::string answer_compare();
  std::string answer_ranges();
  std::string answer_flags();
  void publish(const std::string& text, const std::string& next_question);
  std::string describe_new_leader();
  void write_files();

  const PlanArguments& arguments_;
  Search& search_;
  PlanAnswers& answers_;
  StatusLine status_;
  std::optional<Strategy> printed_leader_, written_leader_;
  mutable std::mutex mutex_;
  std::string machine_output_, unanswered_;
};

// Shows progress in the status line.
Progress progress_on(StatusLine& status);
// Searches the space with the user's arguments. `so_far` is SearchOptions::so_far.
Search run_search(const Job& job, const PlanArguments& arguments, const Space& space, StatusLine& status,
                  std::function<void(const Search&)> so_far = {});

}  // namespace hyperrun
