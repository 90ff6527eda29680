// The tasks of a step whose model is several programs (docs/omni.md): the items that each encoder reads, the
// micro-batches of each stage, the fetches between them, and the waits.
//
//   encoder   | items of 0 | of 1 | of 2 |              | gradient 0 | 1 | 2 | norm | update
//   stage 0       features of 0, forward 0 | ...                 backward 0 | ...
//   stage 1                        stream 0, both 0 | ...
//
// With gradient clipping each program's update waits for the norms of all programs. Without it there are no
// norms, and each program updates when it has done its passes.
//
// The backward passes of a program run in one order, and each pass of an encoder goes to a replica that
// follows from its number. So gradients are added up in the same order whatever is ready when, and timing
// does not change the result.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tasks/task_scheduler.h"

namespace hyperrun {

enum class OmniKind : std::uint8_t {
  kEncode,            // an encoder reads the items of a pass
  kFeatures,          // the first stage fetches these features
  kForward,           // a stage runs the forward pass of a micro-batch
  kStream,            // a stage fetches the output of the stage before it
  kBackward,          // a stage runs the backward pass; the last stage: forward, loss and backward
  kStreamGradient,    // a stage fetches the gradient of its output from the stage behind it
  kFeatureGradients,  // an encoder fetches the feature gradients of a pass
  kEncodeBackward,    // an encoder runs the backward pass of a pass
  kNorm,              // a program computes and exchanges the norm of its gradients; only with clipping
  kUpdate,            // a program updates its weights
  kScore,             // the last stage scores a micro-batch
};
inline constexpr int kOmniKinds = 11;
std::string_view name(OmniKind kind);
bool fetches(OmniKind kind);    // it fetches from other devices and computes nothing
bool ends_step(OmniKind kind);  // it ends a program's step, behind all its passes, on all its devices

struct OmniTask {
  OmniKind kind = OmniKind::kEncode;
  std::int32_t encoder = -1;  // -1: the task is no encoder's
  std::int32_t stage = -1;    // stage that runs it; -1: an encoder does
  std::int32_t micro_batch = 0;
  std::int32_t pass = 0;  // number of the encoder's pass for the micro-batch
  std::int32_t replica =
      -1;  // replica that runs the pass, or has produced the fetched data; -1: not known yet
  std::int64_t step = 0;
  bool operator==(const OmniTask&) const = default;
};

// "backward 3.2": step and micro-batch, and the pass if there are several; from 1 on.
std::string describe(const OmniTask& task);

// Number of passes of each encoder, by micro-batch.
using OmniPasses = std::vector<std::vector<std::int32_t>>;

// The scheduler's groups of encoders and stages.
struct OmniGroups {
  struct Encoder {
    tasks::GroupId all = -1;
    std::vector<tasks::GroupId> replicas;
    std::string name{};  // name of the program, for messages
  };
  struct Stage {
    tasks::GroupId all = -1;
    std::string name{};
  };
  std::vector<Encoder> encoders;
  std::vector<Stage> stages;
};

class OmniTasks {
 public:
  // The order in which tasks are submitted. The static scheduler keeps to it.
  enum class Order : std::uint8_t {
    kPipeline,  // one forward, one backward, with encoders as a stage before the first
    kOneByOne,  // all passes of encoders, the text model, then all backward passes of encoders
  };

  // `scheduler` outlives it. `clips`: gradients are clipped.
  OmniTasks(tasks::TaskScheduler& scheduler, OmniGroups groups, Order order, bool clips);

  // Submits a step. `next` are the passes of the following step, whose tasks may begin as soon as their
  // inputs exist; empty: none follows at once.
  void begin(std::int64_t step, OmniPasses passes, const OmniPasses& next);
  // Submits micro-batches that are only scored.
  void score(std::int64_t step, OmniPasses passes);

  // Submits a task of a program (encoders first) on all of its devices, outside of any step.
  tasks::TaskId submit_alone(std::size_t program, std::int64_t step);

  // The group that runs the task.
  tasks::GroupId group_of(const OmniTask& task) const;

  // Records the group to which the scheduler has issued a task.
  void issued(tasks::TaskId task, tasks::GroupId group);
  // Removes a finished task and returns it.
  OmniTask done(tasks::TaskId task);
  bool idle() const { return tasks_.empty(); }
  bool knows(tasks::TaskId task) const { return tasks_.contains(task); }
  const OmniTask& operator[](tasks::TaskId task) const { return tasks_.at(task); }

 private:
  using Key = std::pair<std::int32_t, std::int32_t>;  // micro-batch, and pass or stage

  std::int32_t encoders() const { return static_cast<std::int32_t>(groups_.encoders.size()); }
  std::int32_t stages() const { return static_cast<std::int32_t>(groups_.stages.size()); }
  std::int32_t micro_batches() const { return static_cast<std::int32_t>(passes_.size()); }
  std::int32_t passes(std::int32_t micro_batch, std::int32_t encoder) const;
  std::int32_t passes_of(std::int32_t micro_batch) const;  // passes of all encoders together

  tasks::FutureId submit(OmniTask task, std::vector<tasks::FutureId> inputs, std::int32_t uses);
  tasks::PlaceId place_of(const OmniTask& task) const;
  std::int32_t turn_of(const OmniTask& task) const;
  std::int32_t priority_of(const OmniTask& task) const;

  void in_order(Order order);
  void encode(std::int32_t micro_batch);
  void encode_backward(std::int32_t micro_batch);
  void forward(std::int32_t stage, std::int32_t micro_batch);
  void backward(std::int32_t stage, std::int32_t micro_batch);
  std::vector<tasks::FutureId> arrivals(std::int32_t stage, std::int32_t micro_batch);
  std::vector<tasks::FutureId> behind_passes(std::size_t program) const;
  OmniTask of_program(OmniKind kind, std::size_t program) const;
  void updates(const OmniPasses& next);

  tasks::TaskScheduler& scheduler_;
  OmniGroups groups_;
  Order order_;
  bool clips_;
  std::vector<tasks::ProgramIndex> programs_;        // encoders, then stages
  std::map<tasks::GroupId, tasks::PlaceId> places_;  // places of one group each
  std::vector<tasks::PlaceId> any_replica_;          // by encoder
  std::vector<bool> across_stages_;  // by encoder: true if a replica has devices of several stages

  // State of the step that is being submitted.
  std::int64_t step_ = 0;
  bool scores_ = false;
  OmniPasses passes_;
  std::vector<std::map<Key, tasks::FutureId>> encoded_;   // by encoder, by micro-batch and pass
  std::map<Key, tasks::FutureId> streams_;                // by micro-batch and producing stage
  std::map<Key, tasks::FutureId> learned_;                // by micro-batch and stage: its backward pass
  std::vector<std::vector<tasks::FutureId>> of_replica_;  // by encoder and replica: its last backward pass
  std::vector<tasks::FutureId> of_stage_;                 // by stage: its last backward pass
  std::vector<tasks::FutureId> fetched_;                  // fetched gradients of features
  std::vector<std::int32_t> turn_;                        // by encoder: the replica whose turn it is
  std::vector<tasks::FutureId> weights_;  // by program: the weights that the step begins with; -1: they exist

  std::map<tasks::TaskId, OmniTask> tasks_;                       // tasks under way or waiting
  std::map<std::pair<std::int64_t, Key>, std::int32_t> done_by_;  // replica by step, encoder and slot
};

}  // namespace hyperrun
