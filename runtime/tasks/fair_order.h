// Tasks go as they become ready: the highest priority first, then by the programs' shares, then the oldest. A
// task that may go to several groups goes to the one whose devices have least to do.
//
// Shares hold for each group by itself: of its tasks, programs that wait for it get parts in proportion to
// their shares, within one task (earliest eligible virtual deadline first: I. Stoica, H. Abdel-Wahab, Old
// Dominion University TR-95-22, 1995). A program that had nothing to run is owed nothing for that time. Where
// groups overlap, a task keeps its devices from tasks of other groups that are less urgent, or as urgent and
// were ready after it, also while they do not all have room: a large group is not starved by small ones.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tasks/device_slots.h"
#include "runtime/tasks/task_graph.h"
#include "runtime/tasks/task_order.h"

namespace hyperrun::control {

class FairOrder : public TaskOrder {
 public:
  // places: the groups of each, all that there will be. All outlive this.
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
    std::int64_t turn;  // in the order of readiness
    TaskId task;

    // The first to go is the greatest, as heaps have it.
    bool operator<(const Entry& other) const {
      return priority != other.priority ? priority < other.priority : turn > other.turn;
    }
  };
  // What waits for any of its groups. Places that users declared, and one of each group alone for
  // tasks that go ahead of their inputs.
  struct Place {
    std::vector<GroupId> groups;
    std::vector<std::vector<Entry>> heaps;  // by program; entries of tasks that have left are dropped late
    std::int64_t waiting = 0;
    std::int64_t looked_at = 0;  // the last round of issued() that did
  };
  struct Account {          // of a program with a group
    double time = 0;        // virtual: its tasks so far over its share
    std::int64_t seen = 0;  // the group's choice at which it last had a task to offer
  };
  struct Group {
    std::vector<std::int32_t> places;  // that have it
    std::vector<Account> accounts;     // by program
    std::int64_t choices = 0;
    double time = 0;    // virtual: grows with each task by one over the shares of those that wait
    double shares = 0;  // of those that waited at the last choice
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
  std::vector<std::int32_t> alone_;  // by group: its place of its own
  std::deque<GroupId> look_;         // groups for which a task may be found
  std::vector<GroupId> held_;        // kept for an older task
  std::vector<std::vector<std::int32_t>>
      full_;                    // by program: places that passed it over, its queue being full
  std::vector<Choice> offers_;  // scratch: by program, its first task for a group
  std::int64_t turns_ = 0, rounds_ = 0;
};

}  // namespace hyperrun::control
