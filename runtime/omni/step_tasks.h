// The tasks of a step whose model is several programs (docs/omni.md): which encoder reads which items, which
// stage takes which micro-batch, who fetches what from whom, and what each waits for.
//
//   encoder   | items of 0 | of 1 | of 2 |              | gradient 0 | 1 | 2 | norm | update
//   stage 0       features of 0, forward 0 | ...                 backward 0 | ...
//   stage 1                        stream 0, both 0 | ...
//
// Where gradients are clipped, they are by the norm of all: each program's update waits for the norms of all
// programs. Else there are no norms, and each updates when it is done with its passes.
//
// Of a program backward passes go in one order, and each pass of an encoder to a replica that follows from
// its number: gradients are added up alike whoever is ready when, so what is computed does not depend on it.
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
  kFeatures,          // the first stage fetches them
  kForward,           // a stage, of a micro-batch
  kStream,            // a stage fetches what the one before gives
  kBackward,          // of the last stage: forward, loss and backward
  kStreamGradient,    // a stage fetches that from the one behind it
  kFeatureGradients,  // an encoder fetches those of a pass
  kEncodeBackward,    // of a pass
  kNorm,              // of a program's gradients, which it exchanges; where they are clipped
  kUpdate,            // of a program
  kScore,             // the last stage, of a micro-batch
};
inline constexpr int kOmniKinds = 11;
std::string_view name(OmniKind kind);
bool fetches(OmniKind kind);    // from other devices, and computes nothing
bool ends_step(OmniKind kind);  // of a program, behind all its passes, on all its devices

struct OmniTask {
  OmniKind kind = OmniKind::kEncode;
  std::int32_t encoder = -1;  // -1: none is concerned
  std::int32_t stage = -1;    // that does it; -1: an encoder does
  std::int32_t micro_batch = 0;
  std::int32_t pass = 0;      // of the encoder, for the micro-batch
  std::int32_t replica = -1;  // of the encoder that does it, or has done what is fetched; -1: not known yet
  std::int64_t step = 0;
  bool operator==(const OmniTask&) const = default;
};

// "backward 3.2": of which step and micro-batch, and pass where there are several; from 1 on.
std::string words(const OmniTask& task);

// Passes of each encoder, by micro-batch.
using OmniPasses = std::vector<std::vector<std::int32_t>>;

// Who runs what: groups of the scheduler.
struct OmniGroups {
  struct Encoder {
    control::GroupId all = -1;
    std::vector<control::GroupId> replicas;
    std::string name{};  // of the program, for messages
  };
  struct Stage {
    control::GroupId all = -1;
    std::string name{};
  };
  std::vector<Encoder> encoders;
  std::vector<Stage> stages;
};

class OmniTasks {
 public:
  // In which order tasks are submitted; the static scheduler keeps to it.
  enum class Order : std::uint8_t {
    kPipeline,  // one forward, one backward, encoders as a stage before the first
    kOneByOne,  // all that encoders read, the text model, then all that encoders learn
  };

  // `scheduler` outlives it. `clips`: gradients are clipped.
  OmniTasks(control::TaskScheduler& scheduler, OmniGroups groups, Order order, bool clips);

  // Submits a step. `next`: passes of the step that follows, whose tasks may begin when those are done that
  // they wait for; empty: none follows at once.
  void begin(std::int64_t step, OmniPasses passes, const OmniPasses& next);
  // The same of micro-batches that are only scored.
  void score(std::int64_t step, OmniPasses passes);

  // Of a program, encoders first, on all of its devices, beside no step: it does not ask for it again.
  control::TaskId submit_alone(std::size_t program, std::int64_t step);

  // Who runs it.
  control::GroupId group_of(const OmniTask& task) const;

  // Where the scheduler has put a task.
  void issued(control::TaskId task, control::GroupId group);
  // Returns what it was.
  OmniTask done(control::TaskId task);
  bool idle() const { return tasks_.empty(); }
  bool knows(control::TaskId task) const { return tasks_.contains(task); }
  const OmniTask& operator[](control::TaskId task) const { return tasks_.at(task); }

 private:
  using Key = std::pair<std::int32_t, std::int32_t>;  // micro-batch, and pass or stage

  std::int32_t encoders() const { return static_cast<std::int32_t>(groups_.encoders.size()); }
  std::int32_t stages() const { return static_cast<std::int32_t>(groups_.stages.size()); }
  std::int32_t micro_batches() const { return static_cast<std::int32_t>(passes_.size()); }
  std::int32_t passes(std::int32_t micro_batch, std::int32_t encoder) const;
  std::int32_t passes_of(std::int32_t micro_batch) const;  // all encoders together

  control::FutureId submit(OmniTask task, std::vector<control::FutureId> inputs, std::int32_t uses);
  control::PlaceId place_of(const OmniTask& task) const;
  std::int32_t turn_of(const OmniTask& task) const;
  std::int32_t priority_of(const OmniTask& task) const;

  void in_order(Order order);
  void encode(std::int32_t micro_batch);
  void encode_backward(std::int32_t micro_batch);
  void forward(std::int32_t stage, std::int32_t micro_batch);
  void backward(std::int32_t stage, std::int32_t micro_batch);
  std::vector<control::FutureId> arrivals(std::int32_t stage, std::int32_t micro_batch);
  std::vector<control::FutureId> behind_passes(std::size_t program) const;
  OmniTask of_program(OmniKind kind, std::size_t program) const;
  void updates(const OmniPasses& next);

  control::TaskScheduler& scheduler_;
  OmniGroups groups_;
  Order order_;
  bool clips_;
  std::vector<control::ProgramIndex> programs_;          // encoders, then stages
  std::map<control::GroupId, control::PlaceId> places_;  // of one group
  std::vector<control::PlaceId> any_replica_;            // by encoder
  std::vector<bool> across_stages_;  // by encoder: a replica has devices of several stages

  // Of the step that is being submitted.
  std::int64_t step_ = 0;
  bool scores_ = false;
  OmniPasses passes_;
  std::vector<std::map<Key, control::FutureId>> encoded_;   // by encoder: of micro-batch and pass
  std::map<Key, control::FutureId> streams_;                // of micro-batch and the stage that gives
  std::map<Key, control::FutureId> learned_;                // of micro-batch and stage: its backward pass
  std::vector<std::vector<control::FutureId>> of_replica_;  // by encoder and replica: the last backward pass
  std::vector<control::FutureId> of_stage_;                 // by stage: the last backward pass
  std::vector<control::FutureId> fetched_;                  // gradients of features
  std::vector<std::int32_t> turn_;                          // by encoder: of its replicas
  std::vector<control::FutureId> weights_;  // by program: what the step begins with; -1: it is there

  std::map<control::TaskId, OmniTask> tasks_;                     // under way or waiting
  std::map<std::pair<std::int64_t, Key>, std::int32_t> done_by_;  // by step, encoder and slot: the replica
};

}  // namespace hyperrun
