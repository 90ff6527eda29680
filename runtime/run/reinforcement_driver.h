// A run that learns from rewards: which program does what next.
//
//   generate   pass after pass. The next batch's prompts take slots as the batch before leaves them, as long
//              as the weights are not older than the job allows
//   reward     here, by a rule, when a batch is whole
//   score      the batch, as soon as it is whole
//   train      on the batch, when it is scored, batches in their order; then its weights go to those who
//              generate, between two passes, before the next batch is trained on
//
// Programs on devices of their own do so at once, those that share devices take turns. Where no staleness is
// allowed, a batch is begun when the one before has been learned from, so none grows when weights come, and
// what is computed does not depend on who is where, nor on timing.
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
#include "runtime/run/reinforcement_recorder.h"
#include "runtime/run/rollout.h"
#include "runtime/run/run_driver.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// The programs of a run as its devices have them: sessions, and of each the group of devices and what it
// does.
struct ProgramSessions {
  std::vector<Session> sessions;
  std::vector<std::vector<std::int32_t>> groups;
  std::size_t trains = 0, generates = 0;
  std::optional<std::size_t> scores;
  std::size_t to_generate = 0;          // the exchange of weights
  std::optional<std::size_t> to_score;  // likewise
};
ProgramSessions sessions_of(const Job& job, std::vector<CompiledProgram> compiled);

class ReinforcementDriver : public RunDriver {
 public:
  // What it is given outlives it. `job`: the whole. Begins with the weights of job.run.resume, if it names
  // any.
  ReinforcementDriver(const Job& job, const ProgramSessions& programs, const TaskSplit& tasks,
                      const Tokenizer& tokenizer, ReinforcementRecorder& recorder);

 protected:
  void start() override;
  tasks::Invocation invocation_of(tasks::TaskId id, const tasks::TaskSpec& task,
                                  tasks::GroupId group) override;
  void on_task_done(tasks::TaskId id, const tasks::TaskSpec& task,
                    std::span<const tasks::InvocationDone> results) override;

 private:
  enum class Kind { kBegin, kExchange, kPass, kScore, kTrain, kSave };
  struct Doing {
    Kind kind = Kind::kBegin;
    std::size_t session = 0;
    std::int64_t step = 0;  // kExchange: of the weights
    tasks::Invocation invocation;
  };
  struct Batch {
    Rollout rollout;
    std::int64_t step = 0;  // that learns from it; of an evaluation: of its weights
    // Of the oldest weights that it is drawn with, those of its first token: steps that they have learned.
    std::optional<std::int64_t> version;
    bool evaluates = false;
    std::vector<double> rewards;
    std::vector<float> reference;
  };

  void submit(Doing doing, std::int32_t priority = 0);
  void begin();
  void go_on();
  void exchange();
  void train();
  void generate();
  bool start_batch();
  bool evaluation_is_due() const;
  Batch evaluation() const;
  Batch next_batch() const;
  void grown(std::span<const tasks::InvocationDone> results);
  void whole(Batch batch);
  void score(std::int64_t step);
  void scored(const Doing& doing, std::span<const tasks::InvocationDone> results);
  void trained(std::int64_t step, std::span<const tasks::InvocationDone> results);

  const Job& job_;
  const ProgramSessions& programs_;
  const TaskSplit& tasks_;
  const Tokenizer& tokenizer_;
  ReinforcementRecorder& recorder_;

  std::map<tasks::TaskId, Doing> doing_;
  Generation generation_;
  std::deque<Batch> growing_;            // by the program that generates, in the order of their begin
  std::map<std::int64_t, Batch> whole_;  // by step: completions that have not been trained on
  std::int64_t begun_ = 0;               // batches that have been begun,
  std::int64_t learned_ = 0;             // and that have been trained on
  std::int64_t version_ = -1;            // of the weights that generate; -1: they have none yet
  std::int64_t evaluated_ = -1;          // version of the last evaluation
  bool exchanging_ = false, training_ = false, passing_ = false;  // under way
  std::vector<Doing> beginning_;  // what comes before all else, one after the other, the last first
};

}  // namespace hyperrun
