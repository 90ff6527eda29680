#include "runtime/omni/step_tasks.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

}  // namespace

OmniTasks::OmniTasks(control::TaskScheduler& scheduler, OmniGroups groups, std::int32_t micro_batches,
                     Order order)
    : scheduler_(scheduler), groups_(std::move(groups)), micro_batches_(micro_batches), order_(order) {
  const auto place = [&](control::GroupId group) {
    if (!places_.contains(group)) places_[group] = scheduler_.add_place({group});
  };
  for (std::int32_t e = 0; e < encoders(); ++e) {
    const OmniGroups::Encoder& groups_of = groups_.encoders[index(e)];
    programs_.push_back(scheduler_.add_program({.name = "encoder " + std::to_string(e)}));
    place(groups_of.all);
    for (const control::GroupId g : groups_of.replicas) place(g);
    for (const control::GroupId g : groups_of.with_text) place(g);
    any_replica_.push_back(scheduler_.add_place(groups_of.replicas));
  }
  for (std::int32_t s = 0; s < stages(); ++s) {
    programs_.push_back(scheduler_.add_program({.name = "stage " + std::to_string(s)}));
    place(groups_.stages[index(s)]);
  }
  for (const control::GroupId g : groups_.between) place(g);
  programs_.push_back(scheduler_.add_program({.name = "exchange"}));
  turn_.assign(index(encoders()), 0);
}

std::int32_t OmniTasks::passes(std::int32_t micro_batch, std::int32_t encoder) const {
  return passes_[index(micro_batch)][index(encoder)];
}

void OmniTasks::begin(std::int64_t step, std::vector<std::vector<std::int32_t>> passes) {
  start(step, std::move(passes), false);
}

void OmniTasks::begin_scoring(std::int64_t step, std::vector<std::vector<std::int32_t>> passes) {
  start(step, std::move(passes), true);
}

void OmniTasks::start(std::int64_t step, std::vector<std::vector<std::int32_t>> passes, bool scores) {
  HR_CHECK(ended(), "the step before has not ended");
  step_ = step;
  scores_ = scores;
  passes_ = std::move(passes);
  const auto count = static_cast<std::int32_t>(passes_.size());
  HR_CHECK(count > 0 && count <= micro_batches_, "more micro-batches than ports have room for");
  progress_.assign(passes_.size(), {});
  backward_order_.assign(index(encoders() + stages()), {});
  for (std::int32_t m = 0; m < count; ++m) {
    for (std::int32_t e = 0; e < encoders(); ++e) {
      progress_[index(m)].features.push_back(0);
      progress_[index(m)].replicas.emplace_back(index(passes(m, e)), -1);
      for (std::int32_t p = 0; p < passes(m, e); ++p)
        backward_order_[index(e)].push_back({OmniKind::kEncodeBackward, e, -1, m, p, -1});
    }
    for (std::int32_t s = 0; s < stages(); ++s)
      backward_order_[index(encoders() + s)].push_back({OmniKind::kBackward, -1, s, m});
  }
  next_backward_.assign(backward_order_.size(), 0);
  learned_.assign(backward_order_.size(), 0);
  backward_ready_.clear();
  for (const auto& list : backward_order_) backward_ready_.emplace_back(list.size(), false);

  if (order_ != Order::kDynamic && !scores_)
    return order_ == Order::kPipeline ? submit_pipeline() : submit_one_by_one();
  if (order_ != Order::kDynamic) {  // scoring is a pipeline forward, in any order
    for (std::int32_t m = 0; m < count; ++m) {
      encode(m);
      for (std::int32_t s = 0; s < stages(); ++s) stage_task(s, m, false);
    }
    return;
  }
  for (std::int32_t m = 0; m < count; ++m) {
    for (std::int32_t e = 0; e < encoders(); ++e)
      for (std::int32_t p = 0; p < passes(m, e); ++p) submit({OmniKind::kEncode, e, -1, m, p, -1});
    features_are_there(m);
  }
  if (!scores_)
    for (std::int32_t e = 0; e < encoders(); ++e)
      if (backward_order_[index(e)].empty()) submit({OmniKind::kUpdate, e, -1});
}

// --- places ---------------------------------------------------------------------------------------

control::PlaceId OmniTasks::place_of(const OmniTask& task) const {
  const auto of = [&](control::GroupId group) { return places_.at(group); };
  switch (task.kind) {
    case OmniKind::kEncode:
      if (task.replica < 0) return any_replica_[index(task.encoder)];
      [[fallthrough]];
    case OmniKind::kEncodeBackward: return of(groups_.encoders[index(task.encoder)].replicas[index(task.replica)]);
    case OmniKind::kFeatures:
    case OmniKind::kFeatureGradients:
      return of(groups_.encoders[index(task.encoder)].with_text[index(task.replica)]);
    case OmniKind::kStream: return of(groups_.between[index(task.stage)]);
    case OmniKind::kStreamGradient: return of(groups_.between[index(task.stage - 1)]);
    case OmniKind::kUpdate:
      return of(task.encoder >= 0 ? groups_.encoders[index(task.encoder)].all
                                  : groups_.stages[index(task.stage)]);
    case OmniKind::kForward:
    case OmniKind::kBackward:
    case OmniKind::kScore: return of(groups_.stages[index(task.stage)]);
  }
  return 0;
}

// Messages free others; the text model's backward passes free those behind them; its forward passes are what
// the next stages wait for; encoders do what it will need next, and learn when there is nothing else.
std::int32_t OmniTasks::priority_of(const OmniTask& task) {
  switch (task.kind) {
    case OmniKind::kFeatures:
    case OmniKind::kStream:
    case OmniKind::kStreamGradient:
    case OmniKind::kFeatureGradients: return 5;
    case OmniKind::kBackward: return 4;
    case OmniKind::kForward:
    case OmniKind::kScore: return 3;
    case OmniKind::kEncode: return 2;
    case OmniKind::kEncodeBackward: return 1;
    case OmniKind::kUpdate: return 0;
  }
  return 0;
}

void OmniTasks::submit(const OmniTask& task) {
  control::TaskSpec spec;
  const bool travels = task.kind == OmniKind::kFeatures || task.kind == OmniKind::kStream ||
                       task.kind == OmniKind::kStreamGradient || task.kind == OmniKind::kFeatureGradients;
  spec.program = travels ? programs_.back()
                         : programs_[index(task.encoder >= 0 ? task.encoder : encoders() + task.stage)];
  spec.place = place_of(task);
  spec.step = step_;
  spec.priority = priority_of(task);
  tasks_.emplace(scheduler_.submit(std::move(spec)), task);
}

void OmniTasks::issued(control::TaskId id, control::GroupId group) {
  OmniTask& task = tasks_.at(id);
  if (task.kind != OmniKind::kEncode) return;
  const std::vector<control::GroupId>& replicas = groups_.encoders[index(task.encoder)].replicas;
  task.replica = static_cast<std::int32_t>(std::ranges::find(replicas, group) - replicas.begin());
}

OmniTask OmniTasks::done(control::TaskId id) {
  const OmniTask task = tasks_.extract(id).mapped();
  if (order_ == Order::kDynamic) follow(task);
  return task;
}

// --- by readiness ---------------------------------------------------------------------------------

void OmniTasks::follow(const OmniTask& task) {
  const std::int32_t m = task.micro_batch, s = task.stage;
  const auto next = [&](OmniKind kind) {
    OmniTask t = task;
    t.kind = kind;
    return t;
  };
  switch (task.kind) {
    case OmniKind::kEncode:
      progress_[index(m)].replicas[index(task.encoder)][index(task.pass)] = task.replica;
      return submit(next(OmniKind::kFeatures));
    case OmniKind::kFeatures:
      ++progress_[index(m)].features[index(task.encoder)];
      return features_are_there(m);
    case OmniKind::kForward: return submit(next(OmniKind::kStream));
    case OmniKind::kStream:
      if (s + 2 < stages()) return submit({OmniKind::kForward, -1, s + 1, m});
      return scores_ ? submit({OmniKind::kScore, -1, s + 1, m}) : ready({OmniKind::kBackward, -1, s + 1, m});
    case OmniKind::kBackward:
      learned(encoders() + s);
      if (s > 0) return submit(next(OmniKind::kStreamGradient));
      for (std::int32_t e = 0; e < encoders(); ++e)
        for (std::int32_t p = 0; p < passes(m, e); ++p)
          submit({OmniKind::kFeatureGradients, e, -1, m, p, progress_[index(m)].replicas[index(e)][index(p)]});
      return;
    case OmniKind::kStreamGradient: return ready({OmniKind::kBackward, -1, s - 1, m});
    case OmniKind::kFeatureGradients: return ready(next(OmniKind::kEncodeBackward));
    case OmniKind::kEncodeBackward: return learned(task.encoder);
    case OmniKind::kUpdate:
    case OmniKind::kScore: return;
  }
}

void OmniTasks::features_are_there(std::int32_t m) {
  for (std::int32_t e = 0; e < encoders(); ++e)
    if (progress_[index(m)].features[index(e)] < passes(m, e)) return;
  if (stages() > 1) return submit({OmniKind::kForward, -1, 0, m});
  scores_ ? submit({OmniKind::kScore, -1, 0, m}) : ready({OmniKind::kBackward, -1, 0, m});
}

void OmniTasks::ready(const OmniTask& task) {
  const std::int32_t program = task.encoder >= 0 ? task.encoder : encoders() + task.stage;
  std::vector<OmniTask>& order = backward_order_[index(program)];
  const auto at = std::ranges::find_if(order, [&](const OmniTask& t) {
    return t.micro_batch == task.micro_batch && t.pass == task.pass;
  });
  at->replica = task.replica;
  backward_ready_[index(program)][static_cast<std::size_t>(at - order.begin())] = true;
  release(program);
}

void OmniTasks::release(std::int32_t program) {
  std::size_t& next = next_backward_[index(program)];
  const std::vector<OmniTask>& order = backward_order_[index(program)];
  while (next < order.size() && backward_ready_[index(program)][next]) submit(order[next++]);
}

void OmniTasks::learned(std::int32_t program) {
  if (++learned_[index(program)] < backward_order_[index(program)].size()) return;
  program < encoders() ? submit({OmniKind::kUpdate, program, -1})
                       : submit({OmniKind::kUpdate, -1, program - encoders()});
}

// --- in an order that is settled ------------------------------------------------------------------

void OmniTasks::encode(std::int32_t m) {
  for (std::int32_t e = 0; e < encoders(); ++e)
    for (std::int32_t p = 0; p < passes(m, e); ++p) {
      std::int32_t& turn = turn_[index(e)];
      const std::int32_t replica = turn++ % static_cast<std::int32_t>(groups_.encoders[index(e)].replicas.size());
      progress_[index(m)].replicas[index(e)][index(p)] = replica;
      submit({OmniKind::kEncode, e, -1, m, p, replica});
      submit({OmniKind::kFeatures, e, -1, m, p, replica});
    }
}

void OmniTasks::encode_backward(std::int32_t m) {
  for (std::int32_t e = 0; e < encoders(); ++e)
    for (std::int32_t p = 0; p < passes(m, e); ++p) {
      const std::int32_t replica = progress_[index(m)].replicas[index(e)][index(p)];
      submit({OmniKind::kFeatureGradients, e, -1, m, p, replica});
      submit({OmniKind::kEncodeBackward, e, -1, m, p, replica});
    }
}

// With what it sends.
void OmniTasks::stage_task(std::int32_t s, std::int32_t m, bool backward) {
  const bool last = s + 1 == stages();
  if (scores_ && last) return submit({OmniKind::kScore, -1, s, m});
  if (!backward && !last) {
    submit({OmniKind::kForward, -1, s, m});
    return submit({OmniKind::kStream, -1, s, m});
  }
  if (!backward) return;  // of the last stage both are one
  submit({OmniKind::kBackward, -1, s, m});
  if (s > 0) submit({OmniKind::kStreamGradient, -1, s, m});
}

void OmniTasks::updates() {
  for (std::int32_t e = 0; e < encoders(); ++e) submit({OmniKind::kUpdate, e, -1});
  for (std::int32_t s = 0; s < stages(); ++s) submit({OmniKind::kUpdate, -1, s});
}

void OmniTasks::submit_pipeline() {
  text_in_order(true);
  updates();
}

void OmniTasks::submit_one_by_one() {
  const auto count = static_cast<std::int32_t>(passes_.size());
  for (std::int32_t m = 0; m < count; ++m) encode(m);
  text_in_order(false);
  for (std::int32_t m = 0; m < count; ++m) encode_backward(m);
  updates();
}

// 1F1B: stage k of K takes K - k forward passes, then one backward and one forward in turn. What stages do at
// once may be submitted in any order, as long as nothing comes before what it waits for.
void OmniTasks::text_in_order(bool encoders_are_a_stage) {
  const auto count = static_cast<std::int32_t>(passes_.size());
  const std::int32_t before = encoders_are_a_stage ? 1 : 0, depth = stages() + before;
  struct At {
    std::int32_t forward = 0, backward = 0;
  };
  std::vector<At> at(index(depth));
  const auto run = [&](std::int32_t k, std::int32_t m, bool backward) {
    if (k < before)
      backward ? encode_backward(m) : encode(m);
    else
      stage_task(k - before, m, backward);
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
}

}  // namespace hyperrun
