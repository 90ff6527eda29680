#include "runtime/tasks/fair_order.h"

#include <algorithm>
#include <tuple>

namespace hyperrun::tasks {

FairOrder::FairOrder(TaskGraph& graph, const DeviceSlots& slots,
                     const std::vector<std::vector<GroupId>>& places, bool ahead)
    : graph_(graph), slots_(slots), ahead_(ahead) {
  const auto groups = static_cast<std::size_t>(slots.groups().size());
  groups_.resize(groups);
  for (const std::vector<GroupId>& groups_of_place : places) add_place(groups_of_place);
  for (GroupId g = 0; g < slots.groups().size(); ++g) alone_.push_back(add_place({g}));
}

std::int32_t FairOrder::add_place(std::vector<GroupId> groups) {
  const auto p = static_cast<std::int32_t>(places_.size());
  for (const GroupId g : groups) group(g).places.push_back(p);
  places_.emplace_back().groups = std::move(groups);
  return p;
}

// ---- Readiness

void FairOrder::offered(TaskId task) {
  if (!graph_.waits(task)) return;  // the task was issued ahead of its inputs
  const std::int32_t to = graph_.inputs_done(task) ? graph_.task(task).spec.place : place_ahead(task);
  if (to >= 0) enqueue(task, to);
}

// Returns the place of the group that makes the task's inputs, if that is one of the task's groups, or the
// task's only group; -1: none.
std::int32_t FairOrder::place_ahead(TaskId task) {
  if (!ahead_) return -1;
  const std::vector<GroupId>& groups = place(graph_.task(task).spec.place).groups;
  GroupId g = graph_.producing_group(task);
  if (g < 0) return -1;
  if (groups.size() == 1)
    g = groups.front();
  else if (std::ranges::count(groups, g) == 0)
    return -1;
  return graph_.inputs_come_before(task, g, slots_.groups()) ? alone_[static_cast<std::size_t>(g)] : -1;
}

void FairOrder::enqueue(TaskId id, std::int32_t to) {
  TaskGraph::Task& task = graph_.task(id);
  if (task.queue >= 0) --place(task.queue).waiting;
  if (task.turn < 0) task.turn = turns_++;
  task.queue = to;
  Place& p = place(to);
  const auto program = static_cast<std::size_t>(task.spec.program);
  if (p.heaps.size() <= program) p.heaps.resize(program + 1);
  p.heaps[program].push_back({task.spec.priority, task.turn, id});
  std::push_heap(p.heaps[program].begin(), p.heaps[program].end());
  ++p.waiting;
  look_at_place(to);
}

const FairOrder::Entry* FairOrder::head(std::int32_t place_index, std::size_t program) {
  std::vector<Entry>& heap = place(place_index).heaps[program];
  while (!heap.empty()) {
    const TaskId id = heap.front().task;
    if (graph_.waits(id) && graph_.task(id).queue == place_index) return &heap.front();
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
  }
  return nullptr;
}

// ---- Choice

std::optional<Issue> FairOrder::pick() {
  while (!look_.empty()) {
    const GroupId g = look_.front();
    look_.pop_front();
    group(g).listed = false;
    if (!open(g)) continue;
    const Choice choice = choose(g);
    if (choice.place < 0) continue;
    if (!must_hold(g, choice.entry)) return Issue{choice.entry.task, g};
    group(g).held = true;
    held_.push_back(g);
    for (const std::int32_t p : group(g).places) look_at_place(p);  // another group of the place may serve
  }
  return std::nullopt;
}

// Collects each program's most urgent, oldest task among those that may go to the group now.
void FairOrder::gather_offers(Group& at) {
  offers_.assign(static_cast<std::size_t>(graph_.programs()), {});
  for (const std::int32_t p : at.places) {
    if (place(p).waiting == 0) continue;
    for (std::size_t program = 0; program < place(p).heaps.size(); ++program) {
      const Entry* const entry = head(p, program);
      if (entry == nullptr) continue;
      Choice& offer = offers_[program];
      if (!graph_.fits(entry->task))
        pass_over(program, p);
      else if (offer.place < 0 || offer.entry < *entry)
        offer = {p, *entry};
    }
  }
}

// Chooses among the most urgent offers: programs within their share first, the earliest virtual deadline
// among them.
FairOrder::Choice FairOrder::choose(GroupId g) {
  constexpr double kRounding = 1e-9;
  Group& at = group(g);
  ++at.choices;
  at.shares = 0;
  gather_offers(at);
  Choice best;
  double best_key = 0;
  bool best_due = false;
  for (std::size_t program = 0; program < offers_.size(); ++program) {
    const Choice& offer = offers_[program];
    if (offer.place < 0) continue;
    const double share = graph_.program(static_cast<ProgramIndex>(program)).share;
    at.shares += share;
    const double time = account(at, program).time;
    const bool due = time <= at.time + kRounding;
    const double key = due ? time + 1 / share : time;
    const auto rank = [](std::int32_t priority, bool is_due, double by, std::int64_t turn) {
      return std::tuple(-priority, !is_due, by, turn);
    };
    if (best.place >= 0 && rank(best.entry.priority, best_due, best_key, best.entry.turn) <=
                               rank(offer.entry.priority, due, key, offer.entry.turn))
      continue;
    best = offer;
    best_key = key;
    best_due = due;
  }
  return best;
}

// Returns the account of a program that has a task to offer, brought up to date.
FairOrder::Account& FairOrder::account(Group& at, std::size_t program) {
  if (at.accounts.size() <= program) at.accounts.resize(program + 1);
  Account& account = at.accounts[program];
  if (account.seen + 1 < at.choices) account.time = std::max(account.time, at.time);
  account.seen = at.choices;
  return account;
}

void FairOrder::pass_over(std::size_t program, std::int32_t p) {
  if (full_.size() <= program) full_.resize(program + 1);
  if (std::ranges::count(full_[program], p) == 0) full_[program].push_back(p);
}

// True if an older or more urgent task needs the group's devices together with others, and not all have room.
bool FairOrder::must_hold(GroupId g, const Entry& entry) {
  for (const GroupId other : slots_.overlapping(g)) {
    if (other == g) continue;
    for (const std::int32_t p : group(other).places) {
      const Entry* const elder = eldest_that_needs(p, g);
      if (elder == nullptr) continue;
      // If the elder has room, it goes first only if it is more urgent. Among equals shares decide, not age.
      const auto room =
          std::ranges::find_if(place(p).groups, [&](GroupId of) { return slots_.has_room(of); });
      const bool has_room = room != place(p).groups.end();
      if (has_room ? elder->priority <= entry.priority : !(entry < *elder)) continue;
      if (has_room) look_at_place(p);
      return true;
    }
  }
  return false;
}

// Returns the eldest task of the place, unless one of its groups has room without any device of `g`.
const FairOrder::Entry* FairOrder::eldest_that_needs(std::int32_t p, GroupId g) {
  if (place(p).waiting == 0) return nullptr;
  const std::span<const GroupId> overlapping = slots_.overlapping(g);
  for (const GroupId of : place(p).groups)
    if (slots_.has_room(of) && std::ranges::find(overlapping, of) == overlapping.end()) return nullptr;
  const Entry* eldest = nullptr;
  for (std::size_t program = 0; program < place(p).heaps.size(); ++program) {
    const Entry* const entry = head(p, program);
    if (entry != nullptr && graph_.fits(entry->task) && (eldest == nullptr || *eldest < *entry))
      eldest = entry;
  }
  return eldest;
}

// ---- Changes

void FairOrder::issued(const Issue& issue) {
  const TaskGraph::Task& task = graph_.task(issue.task);
  --place(task.queue).waiting;
  const auto program = static_cast<std::size_t>(task.spec.program);
  Group& at = group(issue.group);
  Account& account = at.accounts[program];
  account.time += 1 / graph_.program(task.spec.program).share;
  at.time += 1 / at.shares;
  release_held();
  // Groups may have lost their room, or be busier now: tasks that wait for them may go elsewhere.
  ++rounds_;
  for (const GroupId g : slots_.overlapping(issue.group)) {
    for (const std::int32_t p : group(g).places) {
      if (place(p).looked_at == rounds_) continue;
      place(p).looked_at = rounds_;
      look_at_place(p);
    }
  }
}

void FairOrder::release_held() {
  for (const GroupId g : std::exchange(held_, {})) {
    group(g).held = false;
    look_at(g);
  }
}

// The task that groups were reserved for may go now, or may no longer be the most urgent.
void FairOrder::freed(GroupId freed) {
  for (const GroupId g : slots_.overlapping(freed)) look_at(g);
  release_held();
}

void FairOrder::released(ProgramIndex program) {
  const auto p = static_cast<std::size_t>(program);
  if (p >= full_.size()) return;
  for (const std::int32_t place : std::exchange(full_[p], {})) look_at_place(place);
}

bool FairOrder::open(GroupId g) const {
  return slots_.has_room(g) && !groups_[static_cast<std::size_t>(g)].held;
}

void FairOrder::look_at(GroupId g) {
  if (group(g).listed || !open(g)) return;
  group(g).listed = true;
  look_.push_back(g);
}

// Looks at the group with least to do among those that could take a task.
void FairOrder::look_at_place(std::int32_t p) {
  if (place(p).waiting == 0) return;
  GroupId least = -1;
  for (const GroupId g : place(p).groups)
    if (open(g) && (least < 0 || slots_.load(g) < slots_.load(least))) least = g;
  if (least >= 0) look_at(least);
}

std::string FairOrder::why(TaskId task) const {
  static_cast<void>(task);
  return "waits for its devices";
}

}  // namespace hyperrun::tasks
