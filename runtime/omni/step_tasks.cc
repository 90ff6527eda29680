#include "runtime/omni/step_tasks.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using tasks::FutureId;

constexpr FutureId kThere = -1;

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

constexpr std::int32_t kMostUrgent = 6;

// Fetches come first, as they free other devices. Then come the text model's backward passes, which free the
// passes behind them, and its forward passes, on which the next stages wait. Encoders read items ahead, and
// run backward when there is nothing else.
std::int32_t usual_priority(OmniKind kind) {
  switch (kind) {
    case OmniKind::kFeatures:
    case OmniKind::kStream:
    case OmniKind::kStreamGradient: return 5;
    case OmniKind::kBackward: return 4;
    case OmniKind::kForward:
    case OmniKind::kScore: return 3;
    case OmniKind::kEncode: return 2;
    case OmniKind::kFeatureGradients:
    case OmniKind::kEncodeBackward:
    case OmniKind::kNorm:
    case OmniKind::kUpdate: return 1;
  }
  return 0;
}

bool meet(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return std::ranges::find_first_of(a, b) != a.end();
}

std::vector<FutureId> those_to_come(std::vector<FutureId> inputs) {
  std::erase(inputs, kThere);
  return inputs;
}

}  // namespace

std::string_view name(OmniKind kind) {
  switch (kind) {
    case OmniKind::kEncode:
    case OmniKind::kForward: return "forward";
    case OmniKind::kBackward:
    case OmniKind::kEncodeBackward: return "backward";
    case OmniKind::kNorm: return "norm";
    case OmniKind::kUpdate: return "update";
    case OmniKind::kScore: return "score";
    case OmniKind::kFeatures: return "features";
    case OmniKind::kStream: return "stream";
    case OmniKind::kStreamGradient: return "stream gradient";
    case OmniKind::kFeatureGradients: return "feature gradients";
  }
  return "";
}

bool fetches(OmniKind kind) {
  return kind == OmniKind::kFeatures || kind == OmniKind::kStream || kind == OmniKind::kStreamGradient ||
         kind == OmniKind::kFeatureGradients;
}

bool ends_step(OmniKind kind) { return kind == OmniKind::kNorm || kind == OmniKind::kUpdate; }

std::string describe(const OmniTask& task) {
  std::string text = fmt::format("{} {}", name(task.kind), task.step + 1);
  if (ends_step(task.kind)) return text;
  text += "." + std::to_string(task.micro_batch + 1);
  return task.encoder >= 0 ? fmt::format("{}.{}", text, task.pass + 1) : text;
}

OmniTasks::OmniTasks(tasks::TaskScheduler& scheduler, OmniGroups groups, Order order, bool clips)
    : scheduler_(scheduler), groups_(std::move(groups)), order_(order), clips_(clips) {
  const auto add_place = [&](tasks::GroupId group) {
    if (!places_.contains(group)) places_[group] = scheduler_.add_place({group});
  };
  for (std::int32_t e = 0; e < encoders(); ++e) {
    const OmniGroups::Encoder& of = groups_.encoders[index(e)];
    programs_.push_back(scheduler_.add_program({.name = of.name}));
    add_place(of.all);
    for (const tasks::GroupId g : of.replicas) add_place(g);
    any_replica_.push_back(scheduler_.add_place(of.replicas));
  }
  for (std::int32_t s = 0; s < stages(); ++s) {
    programs_.push_back(scheduler_.add_program({.name = groups_.stages[index(s)].name}));
    add_place(groups_.stages[index(s)].all);
  }
  for (const OmniGroups::Encoder& e : groups_.encoders)
    across_stages_.push_back(std::ranges::count_if(groups_.stages, [&](const OmniGroups::Stage& s) {
                               return meet(scheduler_.groups().ranks(e.replicas.front()),
                                           scheduler_.groups().ranks(s.all));
                             }) > 1);
  weights_.assign(programs_.size(), kThere);
}

std::int32_t OmniTasks::passes(std::int32_t micro_batch, std::int32_t encoder) const {
  return passes_[index(micro_batch)][index(encoder)];
}

std::int32_t OmniTasks::passes_of(std::int32_t micro_batch) const {
  const std::vector<std::int32_t>& of = passes_[index(micro_batch)];
  return std::accumulate(of.begin(), of.end(), 0);
}

void OmniTasks::begin(std::int64_t step, OmniPasses passes, const OmniPasses& next) {
  step_ = step;
  scores_ = false;
  passes_ = std::move(passes);
  encoded_.assign(index(encoders()), {});
  streams_.clear();
  learned_.clear();
  fetched_.clear();
  of_stage_.assign(index(stages()), kThere);
  of_replica_.clear();
  for (const OmniGroups::Encoder& e : groups_.encoders) of_replica_.emplace_back(e.replicas.size(), kThere);
  turn_.assign(index(encoders()), 0);
  in_order(order_);
  updates(next);
}

void OmniTasks::score(std::int64_t step, OmniPasses passes) {
  step_ = step;
  scores_ = true;
  passes_ = std::move(passes);
  encoded_.assign(index(encoders()), {});
  streams_.clear();
  for (std::int32_t m = 0; m < micro_batches(); ++m) {
    encode(m);
    for (std::int32_t s = 0; s < stages(); ++s) forward(s, m);
  }
}

void OmniTasks::issued(tasks::TaskId id, tasks::GroupId group) {
  OmniTask& task = tasks_.at(id);
  const auto slot = std::pair(task.step, Key(task.encoder, (task.micro_batch << 12) + task.pass));
  if (task.kind == OmniKind::kFeatures) task.replica = done_by_.extract(slot).mapped();
  if (task.kind != OmniKind::kEncode) return;
  const std::vector<tasks::GroupId>& replicas = groups_.encoders[index(task.encoder)].replicas;
  task.replica = static_cast<std::int32_t>(std::ranges::find(replicas, group) - replicas.begin());
  done_by_[slot] = task.replica;
}

tasks::TaskId OmniTasks::submit_alone(std::size_t program, std::int64_t step) {
  tasks::TaskSpec spec;
  spec.program = programs_[program];
  const std::size_t count = groups_.encoders.size();
  spec.place =
      places_.at(program < count ? groups_.encoders[program].all : groups_.stages[program - count].all);
  spec.step = step;
  return scheduler_.submit(std::move(spec));
}

tasks::GroupId OmniTasks::group_of(const OmniTask& task) const {
  if (task.stage >= 0) return groups_.stages[index(task.stage)].all;
  const OmniGroups::Encoder& e = groups_.encoders[index(task.encoder)];
  return ends_step(task.kind) ? e.all : e.replicas[index(task.replica)];
}

OmniTask OmniTasks::done(tasks::TaskId id) { return tasks_.extract(id).mapped(); }

tasks::PlaceId OmniTasks::place_of(const OmniTask& task) const {
  if (task.stage >= 0) return places_.at(groups_.stages[index(task.stage)].all);
  const OmniGroups::Encoder& e = groups_.encoders[index(task.encoder)];
  if (ends_step(task.kind)) return places_.at(e.all);
  return task.replica < 0 ? any_replica_[index(task.encoder)] : places_.at(e.replicas[index(task.replica)]);
}

// The priority among tasks of one kind: the earlier step first, then the earlier micro-batch. Two steps may
// be under way at once.
std::int32_t OmniTasks::turn_of(const OmniTask& task) const {
  constexpr std::int64_t kSteps = 64;
  return static_cast<std::int32_t>(step_ % kSteps) * (micro_batches() + 1) +
         (ends_step(task.kind) ? micro_batches() : task.micro_batch);
}

// The priority of a task. With clipping nothing else of a step is left when its updates can begin, and the
// whole next step waits for them, so updates go first. Without it updates go last, as an encoder's may need
// devices that are in the middle of the step.
//
// An encoder whose passes take devices of several stages together would hardly ever find them free once the
// text model has begun, so it reads all items before.
std::int32_t OmniTasks::priority_of(const OmniTask& task) const {
  if (task.kind == OmniKind::kUpdate && clips_) return kMostUrgent;
  if (task.kind == OmniKind::kEncode && across_stages_[index(task.encoder)]) return kMostUrgent;
  return usual_priority(task.kind);
}

// Submits a task and returns its output; -1 if nobody uses it.
FutureId OmniTasks::submit(OmniTask task, std::vector<FutureId> inputs, std::int32_t uses) {
  task.step = step_;
  tasks::TaskSpec spec;
  spec.program = programs_[index(task.stage >= 0 ? encoders() + task.stage : task.encoder)];
  spec.place = place_of(task);
  spec.step = step_;
  spec.priority = (priority_of(task) << 24) - turn_of(task);
  spec.inputs = those_to_come(std::move(inputs));
  FutureId output = kThere;
  if (uses > 0) spec.outputs = {output = scheduler_.add_future({.name = "", .uses = uses})};
  tasks_.emplace(scheduler_.submit(std::move(spec)), task);
  return output;
}

// --- what a step has ------------------------------------------------------------------------------

void OmniTasks::encode(std::int32_t m) {
  for (std::int32_t e = 0; e < encoders(); ++e)
    for (std::int32_t p = 0; p < passes(m, e); ++p)
      encoded_[index(e)][{m, p}] =
          submit({OmniKind::kEncode, e, -1, m, p}, {scores_ ? kThere : weights_[index(e)]}, passes_of(m));
}

// The fetched inputs of the stage for a micro-batch. Features are fetched when all exist: each fetch takes
// all devices of the stage, which may be those of encoders.
std::vector<FutureId> OmniTasks::arrivals(std::int32_t s, std::int32_t m) {
  std::vector<FutureId> inputs{scores_ ? kThere : weights_[index(encoders() + s)]};
  if (s > 0) {
    inputs.push_back(submit({OmniKind::kStream, -1, s, m}, {streams_.at({m, s - 1})}, 1));
    return inputs;
  }
  std::vector<FutureId> all;
  for (const std::map<Key, FutureId>& of : encoded_)
    for (auto it = of.lower_bound({m, 0}); it != of.end() && it->first.first == m; ++it)
      all.push_back(it->second);
  for (std::int32_t e = 0; e < encoders(); ++e)
    for (std::int32_t p = 0; p < passes(m, e); ++p)
      inputs.push_back(submit({OmniKind::kFeatures, e, s, m, p}, all, 1));
  return inputs;
}

void OmniTasks::forward(std::int32_t s, std::int32_t m) {
  const bool last = s + 1 == stages();
  if (last && scores_) submit({OmniKind::kScore, -1, s, m}, arrivals(s, m), 0);
  if (!last) streams_[{m, s}] = submit({OmniKind::kForward, -1, s, m}, arrivals(s, m), 1);
}

// The last stage runs both passes as one.
void OmniTasks::backward(std::int32_t s, std::int32_t m) {
  std::vector<FutureId> inputs;
  if (s + 1 == stages())
    inputs = arrivals(s, m);
  else
    inputs = {submit({OmniKind::kStreamGradient, -1, s, m}, {learned_.at({m, s + 1})}, 1)};
  FutureId& before = of_stage_[index(s)];
  inputs.push_back(before);
  const std::int32_t readers = s > 0 ? 1 : passes_of(m);
  before = learned_[{m, s}] = submit({OmniKind::kBackward, -1, s, m}, std::move(inputs), readers + 1);
}

void OmniTasks::encode_backward(std::int32_t m) {
  for (std::int32_t e = 0; e < encoders(); ++e)
    for (std::int32_t p = 0; p < passes(m, e); ++p) {
      const std::int32_t replica =
          turn_[index(e)]++ % static_cast<std::int32_t>(groups_.encoders[index(e)].replicas.size());
      FutureId& before = of_replica_[index(e)][index(replica)];
      const FutureId gradients =
          submit({OmniKind::kFeatureGradients, e, -1, m, p, replica}, {learned_.at({m, 0})}, 2);
      fetched_.push_back(gradients);
      before = submit({OmniKind::kEncodeBackward, e, -1, m, p, replica}, {gradients, before}, 1);
    }
}

// The program's last backward passes or, if it had none, its update before. A first stage goes on when all
// gradients have been fetched: its next backward passes overwrite them.
std::vector<FutureId> OmniTasks::behind_passes(std::size_t program) const {
  const std::size_t count = groups_.encoders.size();
  std::vector<FutureId> inputs =
      program < count ? of_replica_[program] : std::vector{of_stage_[program - count]};
  inputs.push_back(weights_[program]);
  if (program == count) inputs.insert(inputs.end(), fetched_.begin(), fetched_.end());
  return inputs;
}

OmniTask OmniTasks::of_program(OmniKind kind, std::size_t program) const {
  const auto p = static_cast<std::int32_t>(program);
  return p < encoders() ? OmniTask{kind, p, -1} : OmniTask{kind, -1, p - encoders()};
}

void OmniTasks::updates(const OmniPasses& next) {
  const std::size_t programs = programs_.size();
  std::vector<FutureId> norms;
  for (std::size_t p = 0; clips_ && p < programs; ++p)
    norms.push_back(
        submit(of_program(OmniKind::kNorm, p), behind_passes(p), static_cast<std::int32_t>(programs)));
  for (std::size_t p = 0; p < programs; ++p) {
    const OmniTask update = of_program(OmniKind::kUpdate, p);
    std::int32_t uses = next.empty() ? 0 : 1;  // used by the next task behind the passes
    for (const std::vector<std::int32_t>& of : next)
      uses += update.encoder < 0 ? 1 : of[index(update.encoder)];
    weights_[p] = submit(update, clips_ ? norms : behind_passes(p), uses);
  }
}

// --- in which order -------------------------------------------------------------------------------

// Submits 1F1B: stage k of K runs K - k forward passes, then one backward and one forward in turn. Concurrent
// tasks of stages may be submitted in any order, as long as producers come before consumers.
void OmniTasks::in_order(Order order) {
  const std::int32_t count = micro_batches(), before = order == Order::kPipeline ? 1 : 0,
                     depth = stages() + before;
  if (before == 0)
    for (std::int32_t m = 0; m < count; ++m) encode(m);
  struct At {
    std::int32_t forward = 0, backward = 0;
  };
  std::vector<At> at(index(depth));
  const auto run = [&](std::int32_t k, std::int32_t m, bool back) {
    if (k < before)
      back ? encode_backward(m) : encode(m);
    else
      back ? backward(k - before, m) : forward(k - before, m);
  };
  for (bool more = true; more;) {
    more = false;
    for (std::int32_t k = depth - 1; k >= 0; --k) {
      At& a = at[index(k)];
      const bool can_forward = a.forward < count && (k == 0 || at[index(k - 1)].forward > a.forward);
      const bool can_backward =
          a.backward < a.forward && (k + 1 == depth || at[index(k + 1)].backward > a.backward);
      const bool wants_backward = a.forward == count || a.forward - a.backward >= depth - k;
      if (wants_backward ? !can_backward : !can_forward) continue;
      wants_backward ? run(k, a.backward++, true) : run(k, a.forward++, false);
      more = true;
    }
  }
  if (before == 0)
    for (std::int32_t m = 0; m < count; ++m) encode_backward(m);
}

}  // namespace hyperrun
