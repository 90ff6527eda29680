#include "runtime/run/reinforcement_driver.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/schedule.h"
#include "runtime/inference/samples_io.h"
#include "runtime/ir/programs.h"
#include "runtime/reinforce/reward.h"
#include "runtime/run/protocol.h"
#include "runtime/run/results.h"
#include "runtime/sim/simulate.h"

namespace hyperrun {
namespace {

using tasks::InvocationDone;
using tasks::TaskId;

// Numbers of evaluations' completions begin here, so that they draw otherwise than those that are trained on.
constexpr std::int32_t kEvaluationIds = 1 << 30;

// Priorities of tasks; a pass of generation has 0.
constexpr std::int32_t kLearns = 1, kHandsOver = 2;

tasks::DeviceGroups groups_of(const Job& job, const ProgramSessions& programs) {
  tasks::DeviceGroups groups(job.supernode.devices);
  for (const std::vector<std::int32_t>& ranks : programs.groups) groups.add(ranks);
  return groups;
}

// Of prompts that do not fill a pass (Batcher): what the pass costs beside one in which all grow.
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
                                         ReinforcementRecorder& recorder)
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
}

void ReinforcementDriver::start() {
  if (programs_.to_score)
    beginning_.push_back(
        {Kind::kBegin, *programs_.to_score, 0, {.program = number(*programs_.to_score, "exchange")}});
  if (!job_.run.resume.empty())
    beginning_.push_back({Kind::kBegin,
                          programs_.trains,
                          0,
                          {.program = number_of_all(programs_.trains, kLoadWeightsProgram)}});
  beginning_.push_back({Kind::kBegin, programs_.trains, 0, {.program = number(programs_.trains, "init")}});
  begin();
}

void ReinforcementDriver::begin() {
  submit(std::move(beginning_.back()));
  beginning_.pop_back();
}

// Urgent tasks go first where several programs wait for the same devices.
void ReinforcementDriver::submit(Doing doing, std::int32_t priority) {
  const Job& job = programs_.sessions[doing.session].job;
  if (job.run.clock == kPaced && doing.kind != Kind::kBegin && doing.kind != Kind::kSave)
    doing.invocation.scalars[kDilation] = job.run.dilation;
  tasks::TaskSpec task;
  task.program = static_cast<tasks::ProgramIndex>(doing.session);
  task.place = static_cast<tasks::PlaceId>(doing.session);
  task.step = doing.step;
  task.priority = priority;
  doing_.emplace(scheduler().submit(std::move(task)), std::move(doing));
}

tasks::Invocation ReinforcementDriver::invocation_of(TaskId id, const tasks::TaskSpec&, tasks::GroupId) {
  return doing_.at(id).invocation;
}

void ReinforcementDriver::on_task_done(TaskId id, const tasks::TaskSpec& task,
                                       std::span<const InvocationDone> results) {
  const Doing doing = std::move(doing_.extract(id).mapped());
  const std::string& program = programs_.sessions[doing.session].name;
  if (doing.kind != Kind::kBegin && doing.kind != Kind::kSave)
    recorder_.ran(program, program + " " + std::to_string(task.step + 1), programs_.groups[doing.session],
                  results);
  switch (doing.kind) {
    case Kind::kBegin:
      if (!beginning_.empty()) return begin();
      break;
    case Kind::kSave: break;
    case Kind::kExchange:
      exchanging_ = false;
      version_ = doing.step;
      break;
    case Kind::kPass: grown(results); break;
    case Kind::kScore: scored(doing, results); break;
    case Kind::kTrain: trained(doing.step, results); break;
  }
  go_on();
}

void ReinforcementDriver::go_on() {
  exchange();
  train();
  generate();
}

// Between two steps of the learner: the next one is submitted behind it, and is less urgent. And between two
// passes, but an evaluation is drawn with one version.
void ReinforcementDriver::exchange() {
  if (exchanging_ || training_ || version_ == learned_ || evaluation_is_due()) return;
  if (begun_ == job_.training.steps && learned_ < job_.training.steps) return;  // no batch will need them
  exchanging_ = true;
  submit({Kind::kExchange,
          programs_.to_generate,
          learned_,
          {.program = number(programs_.to_generate, "exchange")}},
         kHandsOver);
}

// One pass at a time, as each brings what the next begins with. A batch whose prompts wait for slots would
// only grow old.
void ReinforcementDriver::generate() {
  if (exchanging_ || passing_) return;
  while (generation_.has_room() && start_batch()) continue;
  std::optional<tasks::Invocation> pass = generation_.next();
  if (!pass) return;
  passing_ = true;
  pass->program = number_of_all(programs_.generates, pass->program);
  submit({Kind::kPass, programs_.generates, growing_.front().step, *std::move(pass)});
}

bool ReinforcementDriver::start_batch() {
  if (evaluation_is_due()) {
    if (!growing_.empty()) return false;
    growing_.push_back(evaluation());
  } else if (begun_ < job_.training.steps && begun_ - version_ <= job_.reinforcement.staleness) {
    growing_.push_back(next_batch());
    ++begun_;
  } else {
    return false;
  }
  for (Prompt& prompt : growing_.back().rollout.prompts(job_.reinforcement.tokens))
    generation_.add(std::move(prompt));
  return true;
}

// From when its weights are there until it is whole.
bool ReinforcementDriver::evaluation_is_due() const {
  if (tasks_.held_back.empty() || evaluated_ == version_) return false;
  const std::int32_t every = job_.reinforcement.evaluate_every;
  return version_ == 0 || version_ == job_.training.steps ||
         (every > 0 && version_ / every > std::max<std::int64_t>(evaluated_, 0) / every);
}

ReinforcementDriver::Batch ReinforcementDriver::evaluation() const {
  const std::size_t most = static_cast<std::size_t>(job_.reinforcement.evaluate);
  const std::span<const Task> tasks(tasks_.held_back.data(), std::min(most, tasks_.held_back.size()));
  // The same draws each time: what differs is the weights.
  return {Rollout(tasks, 1, kEvaluationIds, tokenizer_), version_, version_, true, {}, {}};
}

ReinforcementDriver::Batch ReinforcementDriver::next_batch() const {
  const std::int32_t samples = job_.reinforcement.samples, batch = job_.training.batch;
  std::vector<Task> tasks;
  for (const std::size_t t :
       tasks_of_step(tasks_.train.size(), static_cast<std::size_t>(batch / samples), begun_, job_.run.seed))
    tasks.push_back(tasks_.train[t]);
  const auto first = static_cast<std::int32_t>(begun_ * batch % kEvaluationIds);
  return {Rollout(tasks, samples, first, tokenizer_), begun_, {}, false, {}, {}};
}

void ReinforcementDriver::grown(std::span<const InvocationDone> results) {
  passing_ = false;
  const std::vector<SampledToken> tokens = generation_.done(results);
  if (!generation_.was_prefill()) recorder_.decoded(std::ssize(tokens), generation_.slots());
  for (const SampledToken& token : tokens) {
    const auto of = std::ranges::find_if(growing_, [&](const Batch& b) { return b.rollout.has(token.id); });
    if (!of->version) of->version = version_;
    of->rollout.add(token);
  }
  std::deque<Batch> still;
  for (Batch& batch : std::exchange(growing_, {})) {
    if (batch.rollout.done())
      whole(std::move(batch));
    else
      still.push_back(std::move(batch));
  }
  growing_ = std::move(still);
}

void ReinforcementDriver::whole(Batch batch) {
  batch.rewards = batch.rollout.rewards(job_.reinforcement.reward, tokenizer_);
  if (batch.evaluates) {
    evaluated_ = *batch.version;
    return recorder_.evaluation(
        {*batch.version, mean(batch.rewards), share_of_ones(batch.rewards), std::ssize(batch.rewards), {}});
  }
  recorder_.generated(batch.rollout.tokens());
  const std::int64_t step = batch.step;
  whole_.emplace(step, std::move(batch));
  if (programs_.scores) score(step);
}

// A pass a micro-batch.
void ReinforcementDriver::score(std::int64_t step) {
  const std::vector<Completion>& all = whole_.at(step).rollout.completions();
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
           kLearns);
  }
}

// In order: passes of one program on one group come back as they were issued.
void ReinforcementDriver::scored(const Doing& doing, std::span<const InvocationDone> results) {
  Batch& batch = whole_.at(doing.step);
  const Session& session = programs_.sessions[doing.session];
  const auto program = static_cast<std::size_t>(doing.invocation.program % kProgramsOfASession);
  const std::vector<float> logp = whole_output_as<float>(session.plan, program, "logp", parts_of(results));
  batch.reference.insert(batch.reference.end(), logp.begin(), logp.end());
}

// The next batch, if it is there.
void ReinforcementDriver::train() {
  const auto next = whole_.find(learned_);
  if (training_ || next == whole_.end()) return;
  const auto& [step, batch] = *next;
  const std::int64_t scores = programs_.scores ? std::ssize(batch.rewards) * job_.model.sequence : 0;
  if (std::ssize(batch.reference) < scores) return;
  training_ = true;
  const Samples samples = experience_of(
      batch.rollout.completions(), job_.model.sequence,
      advantages(batch.rewards, static_cast<std::size_t>(job_.reinforcement.samples)), batch.reference);
  tasks::Invocation invocation{.program = number(programs_.trains, "train"), .data = to_bytes(samples)};
  invocation.step = step;
  invocation.scalars[kLearningRate] = learning_rate(job_.training, step);
  submit({Kind::kTrain, programs_.trains, step, std::move(invocation)}, kLearns);
}

void ReinforcementDriver::trained(std::int64_t step, std::span<const InvocationDone> results) {
  const Batch batch = std::move(whole_.extract(step).mapped());
  training_ = false;
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
  const std::int32_t every = job_.run.checkpoint_every;
  if (learned_ == job_.training.steps || (every > 0 && learned_ % every == 0))
    submit(
        {Kind::kSave, programs_.trains, learned_, {.program = number_of_all(programs_.trains, kSaveProgram)}},
        kLearns);
}

}  // namespace hyperrun
