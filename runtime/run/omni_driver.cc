#include "runtime/run/omni_driver.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/learning_rate.h"
#include "runtime/inference/samples_io.h"
#include "runtime/inference/vectors_io.h"
#include "runtime/ir/programs.h"
#include "runtime/rank/protocol.h"
#include "runtime/run/divergence.h"
#include "runtime/run/results.h"

namespace hyperrun {
namespace {

using tasks::InvocationDone;
using tasks::TaskId;

// Sums in the order of programs, so that rounding does not depend on the order of arrival.
double sum_of(const std::vector<double>& squares) {
  return std::accumulate(squares.begin(), squares.end(), 0.0);
}

tasks::DeviceGroups groups_of(const Job& job, const OmniPlan& plan) {
  tasks::DeviceGroups groups(job.supernode.devices);
  for (const std::vector<std::int32_t>& ranks : ranks_of(plan).ranks) groups.add(ranks);
  return groups;
}

}  // namespace

// Devices need only those fields of the job that are the same for all: budgets, the clock, the seed. So every
// session has the text model's job without parallelism, as a job of one device, which passes the reader's
// checks.
std::vector<Session> sessions_of(const OmniPlan& plan, const Job& job) {
  Job text = job_of(job, *find_program(job, kTrains));
  text.parallel = {};
  text.memory = {};
  text.training.policy = {};
  std::vector<Session> sessions;
  const auto add = [&](const std::string& name, const std::vector<int>& ranks, const Plan& of) {
    Session& s = sessions.emplace_back();
    s.name = name;
    s.ranks = ranks;
    s.job = text;
    s.job.supernode = job.supernode;
    s.job.supernode.devices = 1;
    s.plan = of;
  };
  for (const OmniPlan::Encoder& e : plan.encoders) add(e.program.name, e.program.ranks, e.program.plan);
  for (const CompiledProgram& s : plan.stages) add(s.name, s.ranks, s.plan);
  add("exchange", {}, plan.exchange);
  return sessions;
}

OmniDriver::OmniDriver(const Job& job, const OmniPlan& plan, const std::vector<Session>& sessions,
                       const OmniInputs& inputs, OmniRecorder& recorder,
                       const std::optional<ProgramsState>& state)
    : RunDriver(groups_of(job, plan), scheduling_of(job.media.order), sessions, &recorder),
      job_(job),
      plan_(plan),
      sessions_(sessions),
      inputs_(inputs),
      recorder_(recorder),
      ranks_(ranks_of(plan)),
      tasks_(scheduler(), ranks_.groups, order_of(plan), clips(plan)) {
  for (const OmniPlan::Encoder& e : plan.encoders) items_of_pass_.push_back(e.items);
  if (!state) return;
  begun_ = learned_ = saved_ = state->next_step;
  evaluated_ = state->evaluated;
  after_alone_.push_back([this] {
    for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) submit_alone(s, number_of_index(s, kLoadProgram));
  });
}

void OmniDriver::start() {
  for (std::size_t s = 0; s + 1 < sessions_.size(); ++s) submit_alone(s, number(s, "init"));
}

void OmniDriver::submit_alone(std::size_t session, std::int32_t program, std::string data) {
  tasks::Invocation invocation{.program = program, .data = std::move(data)};
  invocation.step = open_ ? open_->step() : learned_;
  if (open_ && open_->beside()) invocation.scalars[kBeside] = std::int64_t{1};
  alone_.emplace(tasks_.submit_alone(session, learned_), std::move(invocation));
}

// --- steps ----------------------------------------------------------------------------------------

bool OmniDriver::evaluates_after(std::int64_t steps) const {
  if (job_.media.evaluate == 0 || inputs_.held_back->size() == 0 || evaluated_ == steps) return false;
  const std::int32_t every = job_.media.evaluate_every;
  return steps == 0 || steps == job_.training.steps || (every > 0 && steps % every == 0);
}

bool OmniDriver::saves_after(std::int64_t steps) const {
  if (saved_ == steps) return false;
  const std::int32_t every = job_.run.checkpoint_every;
  return steps == job_.training.steps || (every > 0 && steps % every == 0);
}

bool OmniDriver::halts_after(std::int64_t steps) const {
  return steps == job_.training.steps || evaluates_after(steps) || saves_after(steps) ||
         (open_ && steps > open_->step());
}

OmniPasses OmniDriver::passes_of_step(std::int64_t step) const {
  return passes_of(inputs_.train->loads(step), items_of_pass_);
}

void OmniDriver::submit_next() {
  if (!alone_.empty() || is_evaluating()) return;
  if (!after_alone_.empty()) {
    const std::function<void()> follow = std::move(after_alone_.back());
    after_alone_.pop_back();
    return follow();
  }
  if (tasks_.idle() && learned_ == begun_ && (learned_ == 0 ? evaluates_after(0) : halts_after(learned_)))
    return evaluate_or_save();
  while (begun_ < job_.training.steps && begun_ - learned_ < 2 &&
         (begun_ == learned_ || !halts_after(begun_)))
    begin_step();
}

void OmniDriver::begin_step() {
  const std::int64_t step = begun_++;
  OmniPasses next;
  if (!halts_after(begun_)) next = passes_of_step(begun_);
  steps_[step].batches = inputs_.train->step(step);
  steps_[step].squares.resize(sessions_.size() - 1);
  tasks_.begin(step, passes_of_step(step), next);
}

void OmniDriver::finish_step(std::int64_t step) {
  const Step done = std::move(steps_.extract(step).mapped());
  learned_ = step + 1;
  OmniMetrics m;
  m.step = learned_;
  m.loss = done.loss;
  m.grad_norm = std::sqrt(sum_of(done.squares));
  m.lr = learning_rate(job_.training, step);
  m.items.resize(items_of_pass_.size());
  for (const OmniMicroBatch& b : done.batches)
    for (std::size_t e = 0; e < b.items.size(); ++e) m.items[e] += std::ssize(b.items[e]);
  recorder_.step(m);
  require_finite(m.loss, m.grad_norm, learned_);
}

// Runs between two steps: the checkpoint before is ended first, then comes an evaluation, then a checkpoint.
void OmniDriver::evaluate_or_save() {
  recorder_.pause();
  if (open_) return submit_end_of_save();
  if (evaluates_after(learned_)) {
    begin_questions(0);
    return submit_questions();
  }
  if (saves_after(learned_)) submit_save();
}

void OmniDriver::submit_save() {
  saved_ = learned_;
  open_.emplace(learned_, to_json(state()), learned_ < job_.training.steps);
  if (!open_->beside()) after_alone_.push_back([this] { submit_end_of_save(); });
  after_alone_.push_back([this] { submit_parts(kSavePartProgram); });
  submit_alone(0, number_of_index(0, kBeginCheckpointProgram));
}

void OmniDriver::submit_end_of_save() {
  after_alone_.push_back([this] {
    submit_alone(0, number_of_index(0, kEndCheckpointProgram), open_->end(sessions_[0].run_directory));
    open_.reset();
  });
  submit_parts(kAwaitPartProgram);
}

void OmniDriver::submit_parts(std::int32_t program) {
  for (std::size_t s = 0; s + 1 < sessions_.size(); ++s)
    submit_alone(s, number_of_index(s, program), sessions_[s].name);
}

ProgramsState OmniDriver::state() const {
  ProgramsState s;
  s.kind = kOfEncoders;
  s.next_step = learned_;
  s.seed = job_.run.seed;
  s.batch = job_.training.batch;
  s.evaluated = evaluated_;
  for (std::size_t p = 0; p + 1 < sessions_.size(); ++p) s.parts.push_back(sessions_[p].name);
  return s;
}

// --- evaluations ----------------------------------------------------------------------------------

void OmniDriver::begin_questions(std::size_t encoder) {
  Evaluation& e = evaluation_.emplace();
  e.encoder = encoder;
  e.texts = inputs_.train->labels(encoder);
  e.questions = inputs_.held_back->questions(encoder, e.texts, static_cast<std::size_t>(job_.media.evaluate));
}

void OmniDriver::submit_questions() {
  Evaluation& e = *evaluation_;
  while (e.asked == e.questions.size()) {
    record_evaluation();
    if (e.encoder + 1 == items_of_pass_.size()) {
      evaluated_ = learned_;
      evaluation_.reset();
      return submit_next();
    }
    begin_questions(e.encoder + 1);
  }
  e.first = e.asked;
  std::vector<std::vector<std::int64_t>> items;
  Step step;
  for (; e.asked < e.questions.size() && std::ssize(items) < job_.training.micro_batches; ++e.asked) {
    step.batches.push_back(e.questions[e.asked].batch);
    std::vector<std::int64_t>& of = items.emplace_back();
    for (const std::vector<OmniItem>& list : step.batches.back().items) of.push_back(std::ssize(list));
  }
  steps_[learned_] = std::move(step);
  tasks_.score(learned_, passes_of(items, items_of_pass_));
}

// The log likelihood of a text is the sum of the log probabilities of its tokens.
void OmniDriver::take_scores(const OmniTask& task, std::span<const InvocationDone> results) {
  Evaluation& e = *evaluation_;
  const OmniQuestion& q = e.questions[e.first + static_cast<std::size_t>(task.micro_batch)];
  const std::size_t session = session_of(task);
  const Plan& plan = sessions_[session].plan;
  const std::vector<float> logp =
      whole_output_as<float>(plan, plan.program_index("score"), "logp", parts_of(results));
  const auto tokens = static_cast<std::size_t>(q.batch.samples.tokens);
  for (std::size_t s = 0; s < q.sample.size(); ++s) {
    double sum = 0;
    for (std::size_t i = s * tokens; i < (s + 1) * tokens; ++i)
      if (q.batch.samples.targets[i] >= 0) sum += static_cast<double>(logp[i]);
    std::vector<double>& of = e.likelihood[q.sample[s]];
    of.resize(e.texts.size());
    of[static_cast<std::size_t>(q.label[s])] = sum;
  }
}

void OmniDriver::record_evaluation() {
  const Evaluation& e = *evaluation_;
  if (e.likelihood.empty()) return;
  OmniEvaluation m;
  m.step = learned_;
  m.encoder = inputs_.encoders[e.encoder];
  m.samples = std::ssize(e.likelihood);
  m.texts = std::ssize(e.texts);
  std::map<std::string, std::int64_t> frequent;
  for (const auto& [sample, likelihood] : e.likelihood) {
    const auto best = std::ranges::max_element(likelihood) - likelihood.begin();
    const std::string label(inputs_.held_back->label(e.encoder, static_cast<std::size_t>(sample)));
    m.correct += e.texts[static_cast<std::size_t>(best)] == label;
    m.most_frequent = std::max(m.most_frequent, ++frequent[label]);
  }
  recorder_.evaluation(m);
}

// --- tasks ----------------------------------------------------------------------------------------

// The index of the program whose devices run the task.
std::size_t OmniDriver::program_of(const OmniTask& task) const {
  return task.stage >= 0 ? plan_.encoders.size() + static_cast<std::size_t>(task.stage)
                         : static_cast<std::size_t>(task.encoder);
}

std::size_t OmniDriver::session_of(const OmniTask& task) const {
  return fetches(task.kind) ? sessions_.size() - 1 : program_of(task);
}

tasks::Invocation OmniDriver::invocation_of(TaskId id, const tasks::TaskSpec&, tasks::GroupId group) {
  tasks::Invocation invocation;
  if (const auto own = alone_.find(id); own != alone_.end()) {
    invocation = own->second;
  } else {
    tasks_.issued(id, group);
    invocation = make_invocation(tasks_[id]);
    if (job_.run.clock == kPaced && !is_evaluating()) invocation.scalars[kDilation] = job_.run.dilation;
  }
  return invocation;
}

double OmniDriver::squares_of_others(const OmniTask& update) const {
  std::vector<double> squares = steps_.at(update.step).squares;
  squares[program_of(update)] = 0;
  return sum_of(squares);
}

tasks::Invocation OmniDriver::make_invocation(const OmniTask& task) const {
  const auto m = static_cast<std::size_t>(task.micro_batch), e = static_cast<std::size_t>(task.encoder),
             s = static_cast<std::size_t>(task.stage), r = static_cast<std::size_t>(task.replica);
  tasks::Invocation invocation;
  const auto run = [&](std::string_view program) { invocation.program = number(session_of(task), program); };
  static const OmniMicroBatch kNone;
  const OmniMicroBatch& batch = ends_step(task.kind) ? kNone : steps_.at(task.step).batches[m];
  invocation.scalars[kSlot] = static_cast<std::int64_t>(task.micro_batch);
  if (task.encoder >= 0 && !ends_step(task.kind)) {
    const OmniPlan::Encoder& encoder = plan_.encoders[e];
    invocation.scalars[kSlot] = task.micro_batch * encoder.passes + task.pass;
    const std::vector<OmniItem>& items = batch.items[e];
    const std::size_t first = static_cast<std::size_t>(task.pass * encoder.items);
    const std::size_t count = std::min(static_cast<std::size_t>(encoder.items), items.size() - first);
    if (!fetches(task.kind)) {
      const OmniSplit& split = is_evaluating() ? *inputs_.held_back : *inputs_.train;
      InputVectors vectors = split.vectors(e, std::span(items).subspan(first, count));
      vectors.first = encoder.first_item[r];
      invocation.data = to_bytes(vectors);
    }
  }
  const bool reads_text = task.stage == 0 || task.stage + 1 == std::ssize(plan_.stages);
  if (reads_text && !fetches(task.kind) && !ends_step(task.kind)) invocation.data = to_bytes(batch.samples);
  switch (task.kind) {
    case OmniKind::kEncode:
    case OmniKind::kForward: run("forward"); break;
    case OmniKind::kBackward:
    case OmniKind::kEncodeBackward: run("backward"); break;
    case OmniKind::kScore: run("score"); break;
    case OmniKind::kNorm: run("norm"); break;
    case OmniKind::kUpdate:
      run("update");
      if (clips(plan_)) invocation.scalars[kOtherSquares] = squares_of_others(task);
      invocation.scalars[kLearningRate] = learning_rate(job_.training, task.step);
      break;
    case OmniKind::kFeatures: run(features_program(e, r)); break;
    case OmniKind::kFeatureGradients: run(feature_gradients_program(e, r)); break;
    case OmniKind::kStream: run(stream_program(s - 1)); break;
    case OmniKind::kStreamGradient: run(stream_gradient_program(s)); break;
  }
  return invocation;
}

void OmniDriver::on_task_done(TaskId id, const tasks::TaskSpec&, std::span<const InvocationDone> results) {
  if (const auto own = alone_.find(id); own != alone_.end()) {
    if (own->second.program % kProgramsOfASession == kAwaitPartProgram)
      for (const InvocationDone& r : results) open_->part_ended(r.data);
    alone_.erase(own);
    return submit_next();
  }
  const OmniTask task = tasks_.done(id);
  recorder_.ran(sessions_[program_of(task)].name + " " + std::string(name(task.kind)),
                hyperrun::describe(task), scheduler().groups().ranks(tasks_.group_of(task)), results,
                !is_evaluating());
  if (task.kind == OmniKind::kScore) take_scores(task, results);
  if (task.kind == OmniKind::kBackward && task.stage + 1 == std::ssize(plan_.stages))
    steps_.at(task.step).loss += output(results, "loss");
  if (task.kind == OmniKind::kNorm)
    steps_.at(task.step).squares[program_of(task)] = output(results, "grad_squares");
  if (task.kind == OmniKind::kUpdate) {
    Step& step = steps_.at(task.step);
    if (!clips(plan_)) step.squares[program_of(task)] = std::pow(output(results, "grad_norm"), 2);
    if (++step.updates == std::ssize(sessions_) - 1) finish_step(task.step);
  }
  if (is_evaluating()) {
    if (tasks_.idle()) submit_questions();
    return;
  }
  submit_next();
}

}  // namespace hyperrun
