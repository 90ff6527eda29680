// The fair order issues tasks as they become ready: the highest priority first, then by the programs' shares,
// then the oldest. A task with several possible groups goes to the one whose devices have least to do.
//
// Shares hold for each group by itself. Programs that wait for a group get its tasks in proportion to their
// shares, to within one task (earliest eligible virtual deadline first: I. Stoica, H. Abdel-Wahab, Old
// Dominion University TR-95-22, 1995). A program that had nothing to run is owed nothing for that time.
//
// If groups overlap, a task that waits for room reserves its devices against tasks of other groups that are
// less urgent, or equally urgent and ready later. So small groups do not starve a large one.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tasks/device_slots.h"
#include "runtime/tasks/task_graph.h"
#include "runtime/tasks/task_order.h"

namespace hyperrun::tasks {

class FairOrder : public TaskOrder {
 public:
  // `places` are the groups of each place; none is added later. All arguments outlive this.
  FairOrder(TaskGraph& graph, const DeviceSlots& slots, const std::vector<std::vector<GroupId>>& places,
            bool ahead);

  void submitted(TaskId task) override { static_cast<void>(task); }
  void offered(TaskId task) override;
  std::optional<Issue> pick() override;
  void issued(const Issue& issue) override;
  void freed(GroupId group) override;
  void released(ProgramIndex program) override;
  std::string why(TaskId task) const override;

 private:
  struct Entry {
    std::int32_t priority;
    std::int64_t turn;  // number in the order of readiness
    TaskId task;

    // Heaps put the greatest first, so the most urgent entry is the greatest.
    bool operator<(const Entry& other) const {
      return priority != other.priority ? priority < other.priority : turn > other.turn;
    }
  };
  // Tasks that wait for any group of a place. Users declare places; besides, each group has a place of its
  // own for tasks that go ahead of their inputs.
  struct Place {
    std::vector<GroupId> groups;
    std::vector<std::vector<Entry>> heaps;  // by program; entries of issued tasks are dropped late
    std::int64_t waiting = 0;
    std::int64_t looked_at = 0;  // the last round of issued() that looked at it
  };
  struct Account {          // account of a program with a group
    double time = 0;        // virtual time: its tasks so far over its share
    std::int64_t seen = 0;  // the group's last choice at which it had a task to offer
  };
  struct Group {
    std::vector<std::int32_t> places;  // places with this group
    std::vector<Account> accounts;     // by program
    std::int64_t choices = 0;
    double time = 0;    // virtual time: grows with each task by one over the shares of waiting programs
    double shares = 0;  // shares of the programs that waited at the last choice
    bool listed = false, held = false;
  };
  struct Choice {
    std::int32_t place = -1;
    Entry entry{};
  };

  std::int32_t add_place(std::vector<GroupId> groups);
  std::int32_t place_ahead(TaskId task);  // -1: none
  void enqueue(TaskId task, std::int32_t place);
  const Entry* head(std::int32_t place, std::size_t program);
  void gather_offers(Group& group);
  Choice choose(GroupId group);
  Account& account(Group& group, std::size_t program);
  void pass_over(std::size_t program, std::int32_t place);
  void release_held();
  bool must_hold(GroupId group, const Entry& entry);
  const Entry* eldest_that_needs(std::int32_t place, GroupId group);
  bool open(GroupId group) const;
  void look_at(GroupId group);
  void look_at_place(std::int32_t place);

  Place& place(std::int32_t p) { return places_[static_cast<std::size_t>(p)]; }
  Group& group(GroupId g) { return groups_[static_cast<std::size_t>(g)]; }

  TaskGraph& graph_;
  const DeviceSlots& slots_;
  bool ahead_;
  std::vector<Place> places_;
  std::vector<Group> groups_;
  std::vector<std::int32_t> alone_;  // by group: the place of this group alone
  std::deque<GroupId> look_;         // groups that may find a task
  std::vector<GroupId> held_;        // groups reserved for an older task
  std::vector<std::vector<std::int32_t>>
      full_;                    // by program: places that passed it over because its queue is full
  std::vector<Choice> offers_;  // scratch: by program, its first task for a group
  std::int64_t turns_ = 0, rounds_ = 0;
};

}  // namespace hyperrun::tasks
