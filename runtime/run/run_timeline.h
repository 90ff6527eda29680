// A run by the clock: the faults that a model draws for it, the devices that are there, and where the time
// goes. The recorder and the chaos of a run tell it what happens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/faults/executed_times.h"
#include "runtime/ir/job.h"
#include "runtime/report/goodput.h"
#include "runtime/run/drawn_faults.h"
#include "runtime/run/run_clock.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

class RunTimeline {
 public:
  // `model`: of the faults that are drawn; none if nothing is drawn. `state_bytes`: of a checkpoint.
  RunTimeline(const Job& job, std::optional<FaultModel> model, double state_bytes);

  // --- faults ---

  bool draws() const { return faults_.has_value(); }
  // So many devices begin to start. Returns the next fault that hits one of them, once the clock has begun.
  std::optional<FaultSpec> start(std::int32_t devices);
  // The first step of a start is issued, with which the clock begins. Returns the fault if start() has not.
  std::optional<FaultSpec> first_step();
  // Devices that drawn faults have taken and that are not repaired.
  std::int32_t gone();
  // Seconds that await() will take on the native clock.
  double wait(std::int32_t devices);
  // Waits for repairs until so many are there. Returns at once if drawn faults have not taken them, or if
  // they never are there.
  void await(std::int32_t devices);

  // --- what happens; Unix times ---

  void initialised(Nanos end);  // the first Program of a start has ended
  void step(std::int64_t number, std::int64_t begin, std::int64_t end);
  void paced(double dilation, double predicted_step);
  void lost(Nanos found);  // devices that a fault, or something else, has ended
  void undo(std::int64_t from) { times_.undo(from); }

  // Nothing before the first step has begun.
  std::optional<Goodput> goodput() const;

 private:
  std::optional<FaultSpec> arm();
  std::int32_t healthy();
  FaultOutcome foretell(double seconds, double step) const;
  std::vector<double> speeds(double step) const;

  const Job& job_;  // that the user asks for
  double state_bytes_;
  RunClock clock_;
  std::optional<DrawnFaults> faults_;
  std::optional<Fault> next_;  // the next fault of the devices that run or start
  bool armed_ = false;         // a device knows of it
  ExecutedTimes times_;
  std::int32_t devices_ = 0;                // of this start
  std::map<std::int32_t, double> step_of_;  // seconds of a simulated step, by devices; paced clock only
};

// The model of run.chaos, if it has one. Throws an error with the job's line if it cannot be read, or if the
// run cannot go by it.
std::optional<FaultModel> fault_model_of(const LoadedJob& loaded);

// The bytes of a checkpoint of the session's job: each weight and its two moments in float32.
double bytes_of_checkpoint(const Session& session);

}  // namespace hyperrun
