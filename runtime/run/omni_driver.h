// The driver of a run of programs with encoders: turns the tasks of its steps into invocations, and their
// results into metrics.
//
// At most two steps are under way: the tasks of the next step that do not depend on the one before start
// early. Before an evaluation or a checkpoint the driver waits for all tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/compose/omni.h"
#include "runtime/omni/simulate.h"
#include "runtime/omni/step_tasks.h"
#include "runtime/run/omni_inputs.h"
#include "runtime/run/omni_recorder.h"
#include "runtime/run/open_checkpoint.h"
#include "runtime/run/programs_state.h"
#include "runtime/run/run_driver.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// The sessions of the devices, in this order: encoders, stages, the exchange.
std::vector<Session> sessions_of(const OmniPlan& plan, const Job& job);

class OmniDriver : public RunDriver {
 public:
  // All arguments must outlive the driver. `job` is the whole job, not that of one program.
  // The run goes on from `state`, if there is one; the sessions' jobs say where their parts are.
  OmniDriver(const Job& job, const OmniPlan& plan, const std::vector<Session>& sessions,
             const OmniInputs& inputs, OmniRecorder& recorder,
             const std::optional<ProgramsState>& state = {});

 protected:
  void start() override;
  tasks::Invocation invocation_of(tasks::TaskId id, const tasks::TaskSpec& task,
                                  tasks::GroupId group) override;
  void on_task_done(tasks::TaskId id, const tasks::TaskSpec& task,
                    std::span<const tasks::InvocationDone> results) override;

 private:
  // A training step under way, or the questions of an evaluation under way.
  struct Step {
    std::vector<OmniMicroBatch> batches;
    double loss = 0;
    std::vector<double> squares;  // sum of the squared gradients, by program
    std::int64_t updates = 0;     // programs that have finished their update
  };
  // An evaluation: the questions of one encoder after the other, as many at once as the ports have slots.
  struct Evaluation {
    std::size_t encoder = 0;
    std::vector<std::string> texts;
    std::vector<OmniQuestion> questions;
    std::size_t asked = 0;                                   // number of questions submitted
    std::size_t first = 0;                                   // first question under way
    std::map<std::int32_t, std::vector<double>> likelihood;  // by sample, then by text
  };

  // A task outside of any step, on all devices of a program, and what follows when all such tasks are done.
  void submit_alone(std::size_t session, std::int32_t program, std::string data = {});
  void submit_save();
  void submit_end_of_save();
  void submit_parts(std::int32_t program);
  ProgramsState state() const;
  void submit_next();
  bool halts_after(std::int64_t steps) const;
  bool evaluates_after(std::int64_t steps) const;
  bool saves_after(std::int64_t steps) const;
  OmniPasses passes_of_step(std::int64_t step) const;
  void begin_step();
  void evaluate_or_save();
  void begin_questions(std::size_t encoder);
  void submit_questions();
  void take_scores(const OmniTask& task, std::span<const tasks::InvocationDone> results);
  void record_evaluation();
  void finish_step(std::int64_t step);
  double squares_of_others(const OmniTask& update) const;

  tasks::Invocation make_invocation(const OmniTask& task) const;
  std::size_t session_of(const OmniTask& task) const;
  std::size_t program_of(const OmniTask& task) const;
  bool is_evaluating() const { return evaluation_.has_value(); }

  const Job& job_;
  const OmniPlan& plan_;
  const std::vector<Session>& sessions_;
  const OmniInputs& inputs_;
  OmniRecorder& recorder_;
  OmniRanks ranks_;
  OmniTasks tasks_;
  std::vector<std::int64_t> items_of_pass_;           // by encoder
  std::map<tasks::TaskId, tasks::Invocation> alone_;  // tasks outside of steps: init, save
  std::map<std::int64_t, Step> steps_;
  std::int64_t begun_ = 0;       // number of steps begun
  std::int64_t learned_ = 0;     // number of steps finished
  std::int64_t evaluated_ = -1;  // learned_ at the last evaluation
  std::int64_t saved_ = 0;       // learned_ at the last checkpoint
  std::optional<OpenCheckpoint> open_;
  std::vector<std::function<void()>> after_alone_;  // what follows the tasks alone_, the last first
  std::optional<Evaluation> evaluation_;
};

}  // namespace hyperrun
