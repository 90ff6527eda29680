#include "runtime/run/reinforcement_driver.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/learning_rate.h"
#include "runtime/inference/samples_io.h"
#include "runtime/ir/programs.h"
#include "runtime/rank/protocol.h"
#include "runtime/reinforce/reward.h"
#include "runtime/run/divergence.h"
#include "runtime/run/results.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

using tasks::InvocationDone;
using tasks::TaskId;

// Priorities of tasks. A generation pass has priority 0.
constexpr std::int32_t kTrainPriority = 1, kExchangePriority = 2;
constexpr std::int32_t kSavePriority = 3;  // a checkpoint is to be whole before the next step

tasks::DeviceGroups groups_of(const Job& job, const ProgramSessions& programs) {
  tasks::DeviceGroups groups(job.supernode.devices);
  for (const std::vector<std::int32_t>& ranks : programs.groups) groups.add(ranks);
  return groups;
}

// The batcher's patience for prompts that do not fill a pass: the cost of a prefill in decode passes.
double patience(const Job& job, const ProgramSessions& programs) {
  const Plan& plan = programs.sessions[programs.generates].plan;
  const auto lasts = [&](std::string_view program) {
    return static_cast<double>(makespan(plan, program, job.supernode).value);
  };
  return lasts("prefill") / lasts("decode");
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double share_of_ones(const std::vector<double>& values) {
  const auto ones = std::ranges::count(values, 1.0);
  return values.empty() ? 0 : static_cast<double>(ones) / static_cast<double>(values.size());
}

// Whether the task is part of a step, and not of the begin of a run or of a checkpoint.
template <class Kind>
bool is_of_a_step(Kind kind) {
  return kind == Kind::kExchange || kind == Kind::kPass || kind == Kind::kScore || kind == Kind::kTrain;
}

}  // namespace

ProgramSessions sessions_of(const Job& job, std::vector<CompiledProgram> compiled) {
  ProgramSessions programs;
  const ProgramSpec* const scores = find_program(job, kScores);
  const ProgramSpec* const generates = find_program(job, kGenerates);
  for (std::size_t p = 0; p < compiled.size(); ++p) {
    CompiledProgram& c = compiled[p];
    if (c.name == generates->name) programs.generates = p;
    if (scores != nullptr && c.name == scores->name) programs.scores = p;
    if (c.weights == generates->name) programs.to_generate = p;
    if (scores != nullptr && c.weights == scores->name) programs.to_score = p;
    programs.groups.emplace_back(c.ranks.begin(), c.ranks.end());
    Session session;
    session.name = c.name;
    if (c.weights.empty()) session.ranks = std::move(c.ranks);
    session.job = std::move(c.job);
    session.plan = std::move(c.plan);
    programs.sessions.push_back(std::move(session));
  }
  return programs;
}

ReinforcementDriver::ReinforcementDriver(const Job& job, const ProgramSessions& programs,
                                         const TaskSplit& tasks, const Tokenizer& tokenizer,
                                         ReinforcementRecorder& recorder,
                                         const std::optional<ProgramsState>& state)
    : RunDriver(groups_of(job, programs), {.scheduling = tasks::Scheduling::kDynamic, .window = 2},
                programs.sessions, &recorder),
      job_(job),
      programs_(programs),
      tasks_(tasks),
      tokenizer_(tokenizer),
      recorder_(recorder),
      generation_(programs.sessions[programs.generates].job, programs.sessions[programs.generates].plan,
                  ends_of_completions(tokenizer), patience(job, programs)) {
  for (std::size_t s = 0; s < programs.sessions.size(); ++s) {
    scheduler().add_program({.name = programs.sessions[s].name});
    scheduler().add_place({static_cast<tasks::GroupId>(s) + 1});
  }
  resumes_ = state.has_value();
  if (!state) return;
  begun_ = learned_ = saved_ = state->next_step;
  evaluated_ = state->evaluated;
  for (const QueuedBatch& queued : state->queued) complete_.emplace(begun_++, restored(queued));
}

// The reference has the learner's first weights. A run that goes on loads them, as its learner has others.
void ReinforcementDriver::start() {
  const auto then = [&](std::size_t session, std::int32_t program) {
    setup_.insert(setup_.begin(), {Kind::kBegin, session, 0, {.program = program}});
  };
  const auto load = [&](std::size_t session, std::int32_t program) {
    then(session, number_of_index(session, program));
  };
  then(programs_.trains, number(programs_.trains, "init"));
  if (resumes_) {
    load(programs_.trains, kLoadProgram);
    if (programs_.scores) load(*programs_.scores, kLoadWeightsProgram);
  } else {
    if (!job_.run.resume.empty()) load(programs_.trains, kLoadWeightsProgram);
    if (programs_.to_score) then(*programs_.to_score, number(*programs_.to_score, "exchange"));
  }
  submit_setup();
}

void ReinforcementDriver::submit_setup() {
  submit(std::move(setup_.back()));
  setup_.pop_back();
}

// A higher priority goes first if several programs wait for the same devices.
void ReinforcementDriver::submit(PendingTask task, std::int32_t priority) {
  const Job& job = programs_.sessions[task.session].job;
  if (job.run.clock == kPaced && is_of_a_step(task.kind))
    task.invocation.scalars[kDilation] = job.run.dilation;
  tasks::TaskSpec spec;
  spec.program = static_cast<tasks::ProgramIndex>(task.session);
  spec.place = static_cast<tasks::PlaceId>(task.session);
  spec.step = task.step;
  spec.priority = priority;
  pending_.emplace(scheduler().submit(std::move(spec)), std::move(task));
}

tasks::Invocation ReinforcementDriver::invocation_of(TaskId id, const tasks::TaskSpec&, tasks::GroupId) {
  return pending_.at(id).invocation;
}

void ReinforcementDriver::on_task_done(TaskId id, const tasks::TaskSpec& task,
                                       std::span<const InvocationDone> results) {
  const PendingTask done = std::move(pending_.extract(id).mapped());
  const std::string& program = programs_.sessions[done.session].name;
  if (is_of_a_step(done.kind))
    recorder_.ran(program, fmt::format("{} {}", program, task.step + 1), programs_.groups[done.session],
                  results);
  switch (done.kind) {
    case Kind::kBegin:
      if (!setup_.empty()) return submit_setup();
      break;
    case Kind::kBeginSave: submit_parts(Kind::kSavePart, kSavePartProgram); break;
    case Kind::kSavePart:
      if (--parts_under_way_ > 0) break;
      copying_ = false;
      if (!open_->beside()) submit_end_of_save();
      break;
    case Kind::kAwaitPart:
      for (const InvocationDone& r : results) open_->part_ended(r.data);
      if (--parts_under_way_ > 0) break;
      submit_save_task(Kind::kEndSave, programs_.trains, kEndCheckpointProgram,
                       open_->end(programs_.sessions[programs_.trains].run_directory));
      break;
    case Kind::kEndSave: open_.reset(); break;
    case Kind::kExchange:
      exchange_is_pending_ = false;
      version_ = done.step;
      break;
    case Kind::kPass: take_tokens(results); break;
    case Kind::kScore: take_scores(done, results); break;
    case Kind::kTrain: finish_step(done.step, results); break;
  }
  submit_next();
}

void ReinforcementDriver::submit_next() {
  submit_save();
  submit_exchange();
  submit_training();
  submit_pass();
}

// Sends the learner's weights to the generating program, between two steps and between two passes. The next
// step is submitted after the exchange, with a lower priority. During an evaluation the weights must not
// change. They come after a checkpoint that is due: a run that goes on from it has no older ones.
void ReinforcementDriver::submit_exchange() {
  if (exchange_is_pending_ || training_is_pending_ || version_ == learned_ || evaluation_is_due()) return;
  if (save_is_due()) return;
  if (begun_ == job_.training.steps && learned_ < job_.training.steps) return;  // no batch will need them
  exchange_is_pending_ = true;
  submit({Kind::kExchange,
          programs_.to_generate,
          learned_,
          {.program = number(programs_.to_generate, "exchange")}},
         kExchangePriority);
}

// Submits one pass at a time, because each pass depends on the tokens of the one before. A batch starts only
// when slots are free: while its prompts waited, its weights would become staler.
void ReinforcementDriver::submit_pass() {
  if (exchange_is_pending_ || pass_is_pending_) return;
  while (generation_.has_room() && start_batch()) continue;
  std::optional<tasks::Invocation> pass = generation_.next();
  if (!pass) return;
  pass_is_pending_ = true;
  pass->program = number_of_index(programs_.generates, pass->program);
  submit({Kind::kPass, programs_.generates, growing_.front().step, *std::move(pass)});
}

bool ReinforcementDriver::start_batch() {
  if (evaluation_is_due()) {
    if (!growing_.empty()) return false;
    growing_.push_back(make_evaluation());
  } else if (!save_is_due() && begun_ < job_.training.steps &&
             begun_ - version_ <= job_.reinforcement.staleness) {
    growing_.push_back(make_batch(begun_++));
  } else {
    return false;
  }
  for (Prompt& prompt : growing_.back().rollout.prompts(job_.reinforcement.tokens))
    generation_.add(std::move(prompt));
  return true;
}

// An evaluation is due from the arrival of its weights until it is complete.
bool ReinforcementDriver::evaluation_is_due() const {
  if (tasks_.held_back.empty() || evaluated_ == version_) return false;
  const std::int32_t every = job_.reinforcement.evaluate_every;
  return version_ == 0 || version_ == job_.training.steps ||
         (every > 0 && version_ / every > std::max<std::int64_t>(evaluated_, 0) / every);
}

ReinforcementDriver::Batch ReinforcementDriver::make_evaluation() const {
  const std::size_t most = static_cast<std::size_t>(job_.reinforcement.evaluate);
  const std::span<const Task> tasks(tasks_.held_back.data(), std::min(most, tasks_.held_back.size()));
  // Every evaluation has the same ids and therefore the same draws, so that only the weights differ.
  return {Rollout(tasks, 1, kEvaluationIds, tokenizer_), version_, version_, true, {}, {}};
}

ReinforcementDriver::Batch ReinforcementDriver::make_batch(std::int64_t step) const {
  return {rollout_of_step(job_, tasks_.train, step, tokenizer_), step, {}, false, {}, {}};
}

ReinforcementDriver::Batch ReinforcementDriver::restored(const QueuedBatch& queued) const {
  Batch batch = make_batch(queued.step);
  batch.rollout.add_all(queued.completions);
  batch.version = queued.version;
  batch.rewards = batch.rollout.rewards(job_.reinforcement.reward, tokenizer_);
  batch.reference = queued.reference;
  return batch;
}

void ReinforcementDriver::take_tokens(std::span<const InvocationDone> results) {
  pass_is_pending_ = false;
  const std::vector<SampledToken> tokens = generation_.done(results);
  if (!generation_.was_prefill()) recorder_.decoded(std::ssize(tokens), generation_.slots());
  for (const SampledToken& token : tokens) {
    const auto batch =
        std::ranges::find_if(growing_, [&](const Batch& b) { return b.rollout.has(token.id); });
    if (!batch->version) batch->version = version_;
    batch->rollout.add(token);
  }
  std::deque<Batch> unfinished;
  for (Batch& batch : std::exchange(growing_, {})) {
    if (batch.rollout.done())
      finish_batch(std::move(batch));
    else
      unfinished.push_back(std::move(batch));
  }
  growing_ = std::move(unfinished);
}

void ReinforcementDriver::finish_batch(Batch batch) {
  batch.rewards = batch.rollout.rewards(job_.reinforcement.reward, tokenizer_);
  if (batch.is_evaluation) {
    evaluated_ = *batch.version;
    return recorder_.evaluation(
        {*batch.version, mean(batch.rewards), share_of_ones(batch.rewards), std::ssize(batch.rewards), {}});
  }
  recorder_.generated(batch.rollout.tokens());
  const std::int64_t step = batch.step;
  complete_.emplace(step, std::move(batch));
  if (programs_.scores) submit_scoring(step);
}

// Submits one task for each micro-batch.
void ReinforcementDriver::submit_scoring(std::int64_t step) {
  const std::vector<Completion>& all = complete_.at(step).rollout.completions();
  const TrainingSpec& training = programs_.sessions[*programs_.scores].job.training;
  const std::size_t each = static_cast<std::size_t>(training.batch / training.micro_batches);
  for (std::size_t first = 0; first < all.size(); first += each) {
    const std::vector<Completion> part(all.begin() + std::ptrdiff_t(first),
                                       all.begin() + std::ptrdiff_t(first + each));
    submit({Kind::kScore,
            *programs_.scores,
            step,
            {.program = number(*programs_.scores, "score"),
             .data = to_bytes(samples_of(part, job_.model.sequence))}},
           kTrainPriority);
  }
}

// Appends the scores of one micro-batch. Tasks of one program on one group finish in the order of issue.
void ReinforcementDriver::take_scores(const PendingTask& task, std::span<const InvocationDone> results) {
  Batch& batch = complete_.at(task.step);
  const Session& session = programs_.sessions[task.session];
  const auto program = static_cast<std::size_t>(task.invocation.program % kProgramsOfASession);
  const std::vector<float> logp = whole_output_as<float>(session.plan, program, "logp", parts_of(results));
  batch.reference.insert(batch.reference.end(), logp.begin(), logp.end());
}

// Trains on the next batch, if it is complete and scored.
void ReinforcementDriver::submit_training() {
  const auto next = complete_.find(learned_);
  if (training_is_pending_ || next == complete_.end() || save_is_due() || copying_) return;
  const auto& [step, batch] = *next;
  const std::int64_t scores = programs_.scores ? std::ssize(batch.rewards) * job_.model.sequence : 0;
  if (std::ssize(batch.reference) < scores) return;
  training_is_pending_ = true;
  const Samples samples = experience_of(
      batch.rollout.completions(), job_.model.sequence,
      advantages(batch.rewards, static_cast<std::size_t>(job_.reinforcement.samples)), batch.reference);
  tasks::Invocation invocation{.program = number(programs_.trains, "train"), .data = to_bytes(samples)};
  invocation.step = step;
  invocation.scalars[kLearningRate] = learning_rate(job_.training, step);
  submit({Kind::kTrain, programs_.trains, step, std::move(invocation)}, kTrainPriority);
}

void ReinforcementDriver::finish_step(std::int64_t step, std::span<const InvocationDone> results) {
  const Batch batch = std::move(complete_.extract(step).mapped());
  training_is_pending_ = false;
  learned_ = step + 1;
  recorder_.learned(std::ssize(batch.rewards), batch.rollout.tokens());
  ReinforcementMetrics m;
  m.step = learned_;
  m.reward = mean(batch.rewards), m.correct = share_of_ones(batch.rewards);
  m.length = static_cast<double>(batch.rollout.tokens()) / static_cast<double>(batch.rewards.size());
  m.staleness = step - *batch.version;
  m.loss = output(results, "loss"), m.grad_norm = output(results, "grad_norm");
  m.kl = output(results, "kl"), m.clipped = output(results, "clipped");
  m.lr = learning_rate(job_.training, step);
  recorder_.step(m);
  require_finite(m.loss, m.grad_norm, learned_);
  if (open_ && learned_ == open_->step() + 1) submit_end_of_save();
}

// --- checkpoints ----------------------------------------------------------------------------------

bool ReinforcementDriver::save_is_due() const {
  if (saved_ == learned_) return false;
  const std::int32_t every = job_.run.checkpoint_every;
  return learned_ == job_.training.steps || (every > 0 && learned_ % every == 0);
}

// Begins a checkpoint once nothing is under way. Weights are handed over and completions grow while it is
// copied; training waits, as it changes what is copied.
void ReinforcementDriver::submit_save() {
  if (!save_is_due() || open_ || !pending_.empty() || !growing_.empty() || evaluation_is_due()) return;
  saved_ = learned_;
  open_.emplace(learned_, to_json(state()), learned_ < job_.training.steps);
  copying_ = true;
  submit_save_task(Kind::kBeginSave, programs_.trains, kBeginCheckpointProgram, "");
}

void ReinforcementDriver::submit_save_task(Kind kind, std::size_t session, std::int32_t program,
                                           std::string data) {
  tasks::Invocation invocation{.program = number_of_index(session, program), .data = std::move(data)};
  invocation.step = open_->step();
  if (open_->beside()) invocation.scalars[kBeside] = std::int64_t{1};
  submit({kind, session, open_->step(), std::move(invocation)}, kSavePriority);
}

void ReinforcementDriver::submit_parts(Kind kind, std::int32_t program) {
  parts_under_way_ = programs_.scores ? 2 : 1;
  submit_save_task(kind, programs_.trains, program, ".");
  if (programs_.scores) submit_save_task(kind, *programs_.scores, program, kReferencePart);
}

void ReinforcementDriver::submit_end_of_save() { submit_parts(Kind::kAwaitPart, kAwaitPartProgram); }

ProgramsState ReinforcementDriver::state() const {
  ProgramsState s;
  s.kind = kOfRewards;
  s.next_step = learned_;
  s.seed = job_.run.seed;
  s.batch = job_.training.batch;
  s.samples = job_.reinforcement.samples;
  s.evaluated = evaluated_;
  if (programs_.scores) s.parts.emplace_back(kReferencePart);
  for (const auto& [step, batch] : complete_)
    s.queued.push_back({step, *batch.version, batch.rollout.completions(), batch.reference});
  return s;
}

}  // namespace hyperrun
