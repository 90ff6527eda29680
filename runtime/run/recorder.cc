#include "runtime/run/recorder.h"

#include <chrono>
#include <utility>

#include "runtime/run/run_timeline.h"

namespace hyperrun {

Nanos unix_time() {
  return Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count());
}

Recorder::Recorder(RecorderOutputs outputs) : outputs_(std::move(outputs)) {
  if (outputs_.directory != nullptr) metrics_.emplace(outputs_.directory->file(kMetricsFile));
  if (!outputs_.trace.empty()) trace_ = std::make_unique<TraceWriter>(outputs_.trace);
}

void Recorder::begin(const std::vector<tasks::DeviceInfo>& devices) {
  hosts_.clear();
  ranks_ = 0;
  for (const tasks::DeviceInfo& device : devices) {
    hosts_.push_back(device.host);
    if (device.process.count == 1 || device.rank == device.process.first) ++ranks_;
    begin_device(device);
  }
}

void Recorder::go_on(const Error& cause, Nanos when, std::int64_t from, LeftOut left_out) {
  const std::int64_t after = steps_done();
  const std::string place = cause.place().empty() ? "" : cause.place() + ": ";
  restarts_.push_back({after, from, place + cause.cause(), when, {}, left_out});
  forget_steps_after(from);
  if (timeline() != nullptr) timeline()->undo(from);
}

std::optional<Goodput> Recorder::goodput() const {
  return outputs_.timeline == nullptr ? std::nullopt : outputs_.timeline->goodput();
}

void Recorder::write(const std::string& metrics_line) {
  if (!restarts_.empty() && restarts_.back().time.value == 0)
    restarts_.back().time = unix_time() - restarts_.back().lost;
  if (metrics_) metrics_->write(metrics_line);
}

void Recorder::finish() {
  if (std::exchange(finished_, true)) return;
  summarise();
  if (trace_) trace_->close();
  if (outputs_.directory == nullptr) return;
  outputs_.directory->write(kReportFile, report_json());
  const Chart steps = chart();
  outputs_.directory->write(steps.file, to_svg(steps.chart));
}

}  // namespace hyperrun
