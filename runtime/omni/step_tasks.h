// The tasks of a step whose model is several programs (docs/omni.md): which encoder reads which items, which
// stage takes which micro-batch, what goes between them, and in which order.
//
//   encoder   | items of 0 | of 1 | of 2 |                 | gradient 0 | 1 | 2 | update
//   features       \-> 0      \-> 1   ...             0 <-/
//   stage 0            | forward 0 | forward 1 | backward 0 | ...
//   stage 1                        | both 0    | both 1     |
//
// Whatever the order, a program takes its backward passes by micro-batch and pass, so that gradients are
// added up alike: what is computed does not depend on who was ready when.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/control/task_scheduler.h"

namespace hyperrun {

enum class OmniKind : std::uint8_t {
  kEncode,            // an encoder reads the items of a pass
  kFeatures,          // they go to the first stage
  kForward,           // a stage, of a micro-batch
  kStream,            // what it gives goes to the next
  kBackward,          // of the last stage: forward, loss and backward
  kStreamGradient,    // to the stage before
  kFeatureGradients,  // of a pass, to the encoder
  kEncodeBackward,    // of a pass
  kUpdate,            // of a program
  kScore,             // the last stage, of a micro-batch
};

struct OmniTask {
  OmniKind kind = OmniKind::kEncode;
  std::int32_t encoder = -1;  // -1: of a stage
  std::int32_t stage = -1;    // of kStream: the one that gives
  std::int32_t micro_batch = 0;
  std::int32_t pass = 0;      // of the encoder for the micro-batch
  std::int32_t replica = -1;  // of the encoder; -1: not known yet
  bool operator==(const OmniTask&) const = default;
};

// Who runs what: groups of the scheduler.
struct OmniGroups {
  struct Encoder {
    control::GroupId all = -1;
    std::vector<control::GroupId> replicas;
    std::vector<control::GroupId> with_text;  // of each replica together with the first stage
  };
  std::vector<Encoder> encoders;
  std::vector<control::GroupId> stages;
  std::vector<control::GroupId> between;  // of a stage and the one behind it
};

class OmniTasks {
 public:
  enum class Order : std::uint8_t {
    kDynamic,    // what is ready: the text model first, then what it waits for
    kPipeline,   // one forward, one backward, encoders as a stage before the first
    kOneByOne,   // all that encoders read, the text model, then all that encoders learn
  };

  // `scheduler`: of the same order (Scheduling), outlives it.
  OmniTasks(control::TaskScheduler& scheduler, OmniGroups groups, std::int32_t micro_batches, Order order);

  // Submits what there is to do first. `passes`: by micro-batch and encoder. The step before has ended.
  void begin(std::int64_t step, std::vector<std::vector<std::int32_t>> passes);
  // The same of micro-batches that are scored: no backward pass and no update.
  void begin_scoring(std::int64_t step, std::vector<std::vector<std::int32_t>> passes);

  // Where the scheduler has put a task. Before done().
  void issued(control::TaskId task, control::GroupId group);
  // Submits what follows from it. Returns what it was.
  OmniTask done(control::TaskId task);
  bool ended() const { return tasks_.empty(); }

  const OmniTask& operator[](control::TaskId task) const { return tasks_.at(task); }

 private:
  // How far a micro-batch is.
  struct Progress {
    std::vector<std::int32_t> features;   // by encoder: passes whose features are there
    std::vector<std::vector<std::int32_t>> replicas;  // by encoder and pass
  };

  std::int32_t encoders() const { return static_cast<std::int32_t>(groups_.encoders.size()); }
  std::int32_t stages() const { return static_cast<std::int32_t>(groups_.stages.size()); }
  std::int32_t passes(std::int32_t micro_batch, std::int32_t encoder) const;
  void start(std::int64_t step, std::vector<std::vector<std::int32_t>> passes, bool scores);

  void submit(const OmniTask& task);
  control::PlaceId place_of(const OmniTask& task) const;
  static std::int32_t priority_of(const OmniTask& task);

  // Dynamic: what is ready by that.
  void follow(const OmniTask& task);
  void features_are_there(std::int32_t micro_batch);
  void ready(const OmniTask& backward);  // in its program's order
  void release(std::int32_t program);
  void learned(std::int32_t program);

  // Static: the whole step at once.
  void submit_pipeline();
  void submit_one_by_one();
  void encode(std::int32_t micro_batch);
  void encode_backward(std::int32_t micro_batch);
  void stage_task(std::int32_t stage, std::int32_t micro_batch, bool backward);
  void updates();
  void text_in_order(bool encoders_are_a_stage);

  control::TaskScheduler& scheduler_;
  OmniGroups groups_;
  std::int32_t micro_batches_;
  Order order_;
  std::vector<control::ProgramIndex> programs_;           // encoders, stages, exchanges
  std::map<control::GroupId, control::PlaceId> places_;   // of one group
  std::vector<control::PlaceId> any_replica_;             // by encoder
  std::int64_t step_ = 0;
  bool scores_ = false;
  std::vector<std::vector<std::int32_t>> passes_;
  std::vector<Progress> progress_;                        // by micro-batch
  std::vector<std::vector<OmniTask>> backward_order_;     // by program: its backward passes
  std::vector<std::size_t> next_backward_;                // by program: of these, the next to be submitted
  std::vector<std::vector<bool>> backward_ready_;
  std::vector<std::size_t> learned_;                      // by program: backward passes done
  std::vector<std::int32_t> turn_;                        // by encoder: of the replicas, static
  std::map<control::TaskId, OmniTask> tasks_;             // under way or waiting
};

}  // namespace hyperrun
