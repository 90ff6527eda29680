// report.json: the resources of a run (or a simulation of it), planned beside executed. Executor, controller
// and simulator fill these plain values; docs/run_directory.md describes the JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/step_range.h"

namespace hyperrun {

struct CategoryUse {
  std::string
      category;  // weights, gradients, optimizer, activations, communication, scratch, constants, data
  Bytes planned{}, executed{};

  bool operator==(const CategoryUse&) const = default;
};

struct TierUse {
  std::string tier;  // hbm, pool, flash
  Bytes budget{};
  Bytes planned_peak{}, executed_peak{};
  // Bytes by category at the moment of most live bytes, in the Program's order (planned) and with streams and
  // collectives overlapping (executed). The two moments may differ; neither exceeds the peak.
  std::vector<CategoryUse> categories;

  bool operator==(const TierUse&) const = default;
};

struct CollectiveUse {
  std::string collective;   // all-reduce, all-gather, reduce-scatter, all-to-all, shift, broadcast, send
  std::string axis;         // the mesh axis, or several: "dp+tp"
  std::int64_t count = 0;   // number over the whole run
  Bytes bytes{};            // bytes that this device moved over the whole run: sent, or for messages, fetched
  Nanos time{}, exposed{};  // time under way, and the part without computation; 0: not known

  bool operator==(const CollectiveUse&) const = default;
};

struct TransferUse {
  std::string transfer;    // prefetch, store
  std::string tier;        // pool, flash
  std::int64_t count = 0;  // number over the whole run
  Bytes bytes{};
  Bytes elsewhere{};  // the part to or from another host's share of the pool

  bool operator==(const TransferUse&) const = default;
};

struct StreamUse {
  std::string stream;  // cube, vector, comm, dma-in, dma-out
  Nanos busy{};

  bool operator==(const StreamUse&) const = default;
};

struct DeviceReport {
  std::int32_t device = 0;
  std::string host;
  std::vector<TierUse> tiers;
  std::vector<CollectiveUse> collectives;
  std::vector<TransferUse> transfers;
  std::vector<StreamUse> streams;
  Nanos time{};                   // time of all steps, on this device
  Nanos exposed_communication{};  // the part in which only communication ran

  bool operator==(const DeviceReport&) const = default;
};

struct StepReport {
  std::int64_t step = 0;
  std::optional<double> loss, grad_norm;  // nullopt in a simulation
  Nanos time{};

  bool operator==(const StepReport&) const = default;
};

// All instructions of one kind, over all devices and paced steps. A collective's time includes its wait for
// the group.
struct PacedInstruction {
  std::string instruction;  // "Gemm", "all-reduce"
  std::int64_t count = 0;
  Nanos predicted{}, measured{};

  bool operator==(const PacedInstruction&) const = default;
};

// A run on the paced clock beside its simulation. Measured times are those of the wall over the dilation, so
// both are times of the modelled machine.
struct PacedUse {
  double dilation = 0;
  std::int64_t steps = 0;
  Nanos predicted{}, measured{};  // time of a step; measured: the median
  std::vector<PacedInstruction> instructions;
  Bytes original_peak{};  // HBM of a device for the model to whose scale a smaller one ran; 0: there is none

  bool operator==(const PacedUse&) const = default;
};

// The parts of a step on devices that do the same.
struct StepParts {
  std::int32_t first = 0, devices = 0;  // lowest device, and number of devices
  Nanos compute{}, communication{}, transfer{}, bubble{}, optimizer{};

  bool operator==(const StepParts&) const = default;
};

// A level of the machine: bytes of a step that cross it, of a device and of all.
struct LevelUse {
  std::string level;
  Bytes mean{}, most{}, all{};
  double share = 0;  // mean share of the link's bandwidth over the whole step

  bool operator==(const LevelUse&) const = default;
};

struct SimulatedUse {
  Nanos step{};
  double tokens_per_second = 0, mfu = 0, hfu = 0;
  std::vector<StepParts> parts;
  std::vector<LevelUse> levels;
  std::optional<StepRange> range;  // range on a machine with a profile

  bool operator==(const SimulatedUse&) const = default;
};

struct RunReport {
  std::string job;
  std::string machine = "emulated";  // or "simulated"
  std::int64_t parameters = 0;
  std::int64_t tokens = 0;  // tokens trained on, all devices, all steps
  Nanos time{};             // time of all steps
  std::vector<DeviceReport> devices;
  std::vector<StepReport> steps;
  std::optional<PacedUse> paced;
  std::optional<SimulatedUse> simulated;

  bool operator==(const RunReport&) const = default;
};

// Totals of the devices, and the differences between planned and executed.
struct ReportTotals {
  std::int64_t steps = 0;
  double tokens_per_second = 0;
  Bytes communication{};             // sent by all devices
  std::int64_t collectives = 0;      // started by all devices
  double exposed_communication = 0;  // share of the devices' time
  Bytes hbm_peak{};                  // peak of the fullest device
  std::vector<std::int32_t>
      off_plan;  // devices whose executed peak of some tier differs from the planned one
};
ReportTotals totals(const RunReport& report);

// JSON with keys in a fixed order, indented. report_from_json reads it back exactly (but for NaN, see the
// docs).
std::string to_json(const RunReport& report);
// Reads a report; throws kSyntax, at `place`.
RunReport report_from_json(const std::string& text, const std::string& place);
// Reads a file; throws kMissingFile or kSyntax.
RunReport read_report(const std::filesystem::path& path);

// The report for people, as compact tables. Devices with equal numbers share a row; many devices are shown as
// least, median and most.
std::string to_text(const RunReport& report);

}  // namespace hyperrun
