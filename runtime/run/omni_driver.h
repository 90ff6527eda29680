// A run of programs with encoders: the tasks of its steps become invocations, and what they come to metrics.
//
// While a step ends the next one begins, with what does not wait for it any more; only for evaluations and
// checkpoints all come to a halt.
#pragma once

#include <cstdint>
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
#include "runtime/run/run_driver.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// The programs as the devices have them: encoders, then stages, then the exchange.
std::vector<Session> sessions_of(const OmniPlan& plan, const Job& job);

class OmniDriver : public RunDriver {
 public:
  // What it is given outlives it. `job`: the whole.
  OmniDriver(const Job& job, const OmniPlan& plan, const std::vector<Session>& sessions,
             const OmniInputs& inputs, OmniRecorder& recorder);

 protected:
  void start() override;
  tasks::Invocation invocation_of(tasks::TaskId id, const tasks::TaskSpec& task,
                                  tasks::GroupId group) override;
  void on_task_done(tasks::TaskId id, const tasks::TaskSpec& task,
                    std::span<const tasks::InvocationDone> results) override;

 private:
  // A step under way, or micro-batches that are scored.
  struct Step {
    std::vector<OmniMicroBatch> batches;
    double loss = 0;
    std::vector<double> squares;  // of gradients, by program
    std::int64_t updates = 0;
  };
  // An evaluation: questions of one encoder after the other, so many at once as ports have room.
  struct Evaluation {
    std::size_t encoder = 0;
    std::vector<std::string> texts;
    std::vector<OmniQuestion> questions;
    std::size_t asked = 0;                                   // questions
    std::size_t first = 0;                                   // that are being asked
    std::map<std::int32_t, std::vector<double>> likelihood;  // by sample, of each text
  };

  void submit_alone(std::size_t session, std::int32_t program, std::int64_t step);
  void go_on();
  bool halts_after(std::int64_t steps) const;
  bool evaluates_after(std::int64_t steps) const;
  bool saves_after(std::int64_t steps) const;
  OmniPasses passes_of_step(std::int64_t step) const;
  void begin_step();
  void halt();
  void begin_questions(std::size_t encoder);
  void ask();
  void scored(const OmniTask& task, std::span<const tasks::InvocationDone> results);
  void evaluated();
  void trained(std::int64_t step);
  double squares_of_others(const OmniTask& update) const;

  tasks::Invocation invocation(const OmniTask& task) const;
  std::size_t session_of(const OmniTask& task) const;
  std::size_t doer(const OmniTask& task) const;
  bool scores() const { return evaluation_.has_value(); }

  const Job& job_;
  const OmniPlan& plan_;
  const std::vector<Session>& sessions_;
  const OmniInputs& inputs_;
  OmniRecorder& recorder_;
  OmniRanks ranks_;
  OmniTasks tasks_;
  std::vector<std::int64_t> items_of_pass_;           // by encoder
  std::map<tasks::TaskId, tasks::Invocation> alone_;  // of whole programs: begin, save
  std::map<std::int64_t, Step> steps_;
  std::int64_t begun_ = 0, learned_ = 0;     // steps
  std::int64_t evaluated_ = -1, saved_ = 0;  // after so many steps, the last time
  std::optional<Evaluation> evaluation_;
};

}  // namespace hyperrun
