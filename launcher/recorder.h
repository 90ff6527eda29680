// Writes down what the devices report: metrics and progress as it comes, trace, report and loss curve at
// the end.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"
#include "runtime/report/metrics.h"
#include "runtime/report/progress.h"
#include "runtime/report/report.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/trace.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

class Recorder {
 public:
  Recorder(const Job& job, const Plan& plan, const RunDirectory& directory, bool quiet);

  void begin(const std::vector<tasks::DeviceInfo>& devices);
  void step(std::int64_t step, double loss, double grad_norm, std::span<const InvocationStats> stats,
            bool traced);
  // "init", or a pass of "prefill" or "decode": of what it takes, memory is part of the report.
  void ran(const std::string& program, std::span<const InvocationStats> stats);
  void paced(const PacedUse& use) { report_.paced = use; }
  void print(const std::string& line);

  // Writes report.json and loss.svg, closes the trace. Also after a failure, with what there is.
  void finish();

  const RunReport& report() const { return report_; }
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  void add_to_trace(std::int64_t step, std::span<const InvocationStats> stats);
  void add_to_report(std::int64_t step, double loss, double grad_norm, std::span<const InvocationStats> stats,
                     Nanos time);

  void has_run(const std::string& program);

  const Job& job_;
  const Plan& plan_;
  const RunDirectory& directory_;
  MetricsWriter metrics_;
  std::optional<ProgressLine> progress_;
  std::unique_ptr<TraceWriter> trace_;
  RunReport report_;
  std::set<std::string> have_run_;  // programs of which something is in the report
  std::vector<std::string> hosts_;
  std::int64_t start_ = 0, last_end_ = 0;  // Unix time, ns
  bool finished_ = false;
};

// What is planned for a device, of all its programs, and of HBM by category where the most lives.
DeviceReport planned_use(const Job& job, const Role& role);

// Adds what so many steps did, each alike, to a device's report.
void add_steps(const InvocationStats& stats, DeviceReport& device, std::int64_t steps);

std::string mesh_text(const Mesh& mesh);  // "dp 2 x tp 2"

std::int64_t parameters(const Plan& plan);  // weights, all devices together

}  // namespace hyperrun
