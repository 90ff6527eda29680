// The driver of a run that learns from rewards: decides what each program does next.
//
//   generate   runs pass after pass. Prompts of the next batch take the slots that the batch before frees, as
//              long as the weights are not staler than the job allows
//   reward     is a rule that the driver computes when a batch is complete
//   score      computes the reference log probabilities of a complete batch
//   train      takes scored batches in their order. After each, the new weights go to the program that
//              generates, between two passes, before the next batch is trained on
//   save       when a checkpoint is due, no further batch begins until nothing grows and no task is under
//   way.
//              So no sequence is half grown in it: besides weights and moments it has whole batches
//              (programs_state.h)
//
// Programs on different devices run at the same time; programs that share devices take turns. With staleness
// 0 a batch begins when the one before has been trained on. So no weights arrive while a batch is generated,
// and the results depend neither on the placement of the programs nor on timing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/compose/programs.h"
#include "runtime/reinforce/tasks.h"
#include "runtime/run/generation.h"
#include "runtime/run/open_checkpoint.h"
#include "runtime/run/programs_state.h"
#include "runtime/run/reinforcement_recorder.h"
#include "runtime/run/rollout.h"
#include "runtime/run/run_driver.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// The sessions of a run, the ranks of each, and the index of the session for each purpose.
struct ProgramSessions {
  std::vector<Session> sessions;
  std::vector<std::vector<std::int32_t>> groups;  // ranks, by session
  std::size_t trains = 0, generates = 0;
  std::optional<std::size_t> scores;
  std::size_t to_generate = 0;          // exchange of weights from the learner to the generating program
  std::optional<std::size_t> to_score;  // exchange of weights from the learner to the scoring program
};
ProgramSessions sessions_of(const Job& job, std::vector<CompiledProgram> compiled);

class ReinforcementDriver : public RunDriver {
 public:
  // All arguments must outlive the driver. `job` is the whole job, not that of one program. The run goes on
  // from `state`, which is that of job.run.resume. Without it the run begins with the weights there, if it is
  // set.
  ReinforcementDriver(const Job& job, const ProgramSessions& programs, const TaskSplit& tasks,
                      const Tokenizer& tokenizer, ReinforcementRecorder& recorder,
                      const std::optional<ProgramsState>& state = {});

 protected:
  void start() override;
  tasks::Invocation invocation_of(tasks::TaskId id, const tasks::TaskSpec& task,
                                  tasks::GroupId group) override;
  void on_task_done(tasks::TaskId id, const tasks::TaskSpec& task,
                    std::span<const tasks::InvocationDone> results) override;

 private:
  enum class Kind { kBegin, kExchange, kPass, kScore, kTrain, kBeginSave, kSavePart, kAwaitPart, kEndSave };
  struct PendingTask {
    Kind kind = Kind::kBegin;
    std::size_t session = 0;
    std::int64_t step = 0;  // kExchange: version of the weights
    tasks::Invocation invocation;
  };
  struct Batch {
    Rollout rollout;
    std::int64_t step = 0;  // the step that trains on it; for an evaluation, the version of its weights
    // Version of the oldest weights that any token was drawn with, those of the first token. A version is the
    // number of steps that the weights have learned.
    std::optional<std::int64_t> version;
    bool is_evaluation = false;
    std::vector<double> rewards;   // by completion
    std::vector<float> reference;  // reference log probabilities, [completion, position]
  };

  void submit(PendingTask task, std::int32_t priority = 0);
  void submit_setup();
  void submit_next();
  void submit_exchange();
  void submit_training();
  void submit_pass();
  bool start_batch();
  bool evaluation_is_due() const;
  Batch make_evaluation() const;
  Batch make_batch(std::int64_t step) const;
  Batch restored(const QueuedBatch& queued) const;
  bool save_is_due() const;
  void submit_save();
  void submit_parts(Kind kind, std::int32_t program);
  void submit_end_of_save();
  void submit_save_task(Kind kind, std::size_t session, std::int32_t program, std::string data);
  ProgramsState state() const;
  void take_tokens(std::span<const tasks::InvocationDone> results);
  void finish_batch(Batch batch);
  void submit_scoring(std::int64_t step);
  void take_scores(const PendingTask& task, std::span<const tasks::InvocationDone> results);
  void finish_step(std::int64_t step, std::span<const tasks::InvocationDone> results);

  const Job& job_;
  const ProgramSessions& programs_;
  const TaskSplit& tasks_;
  const Tokenizer& tokenizer_;
  ReinforcementRecorder& recorder_;

  bool resumes_ = false;  // goes on from the state of a checkpoint
  std::map<tasks::TaskId, PendingTask> pending_;
  Generation generation_;
  std::deque<Batch> growing_;               // batches being generated, in the order in which they began
  std::map<std::int64_t, Batch> complete_;  // by step: complete batches that have not been trained on
  std::int64_t begun_ = 0;                  // number of batches begun
  std::int64_t learned_ = 0;                // number of batches trained on
  std::int64_t version_ = -1;               // version of the generating weights; -1 before the first exchange
  std::int64_t evaluated_ = -1;             // version of the last evaluation
  std::int64_t saved_ = 0;                  // number of batches trained on at the last checkpoint
  std::optional<OpenCheckpoint> open_;
  std::int64_t parts_under_way_ = 0;  // of this checkpoint, to be saved or awaited
  bool exchange_is_pending_ = false, training_is_pending_ = false, pass_is_pending_ = false;
  bool copying_ = false;            // parts of the checkpoint; a step would change them
  std::vector<PendingTask> setup_;  // tasks before everything else, one at a time, the last first
};

}  // namespace hyperrun
