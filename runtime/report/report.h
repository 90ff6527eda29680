// report.json: what a run (or a simulation of it) used, planned beside executed. Plain values that the
// executor, the controller and the simulator fill; docs/run_directory.md describes the JSON.
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
  // When the most lived at once, in the Program's order (planned) and as it happened, streams and collectives
  // overlapping (executed): the two may differ, and lie in no more than the peak.
  std::vector<CategoryUse> categories;

  bool operator==(const TierUse&) const = default;
};

struct CollectiveUse {
  std::string collective;   // all-reduce, all-gather, reduce-scatter, all-to-all, shift, broadcast, send
  std::string axis;         // the mesh axis, or several: "dp+tp"
  std::int64_t count = 0;   // over the whole run
  Bytes bytes{};            // moved by this device over the whole run: sent, or of a message, fetched
  Nanos time{}, exposed{};  // under way, and of that nothing was computed; 0: not known

  bool operator==(const CollectiveUse&) const = default;
};

struct TransferUse {
  std::string transfer;    // prefetch, store
  std::string tier;        // pool, flash
  std::int64_t count = 0;  // over the whole run
  Bytes bytes{};
  Bytes elsewhere{};  // of them, to or from another host's part of the pool

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
  Nanos time{};                   // of all steps, on this device
  Nanos exposed_communication{};  // of it, the time in which nothing but communication ran

  bool operator==(const DeviceReport&) const = default;
};

struct StepReport {
  std::int64_t step = 0;
  std::optional<double> loss, grad_norm;  // none in a simulation
  Nanos time{};

  bool operator==(const StepReport&) const = default;
};

// All instructions of one kind, all devices and paced steps together: of a collective with the time in which
// it waits for its group.
struct PacedInstruction {
  std::string instruction;  // "Gemm", "all-reduce"
  std::int64_t count = 0;
  Nanos predicted{}, measured{};

  bool operator==(const PacedInstruction&) const = default;
};

// A run on the paced clock beside the simulator: times of the modelled machine, so that the measured ones are
// those of the wall over the dilation.
struct PacedUse {
  double dilation = 0;
  std::int64_t steps = 0;
  Nanos predicted{}, measured{};  // of a step; the median of those that were measured
  std::vector<PacedInstruction> instructions;
  Bytes original_peak{};  // HBM of a device, of the model to whose scale a smaller one ran; 0: none did

  bool operator==(const PacedUse&) const = default;
};

// Of devices that do the same: where a step goes.
struct StepParts {
  std::int32_t first = 0, devices = 0;  // the lowest of them; how many they are
  Nanos compute{}, communication{}, transfer{}, bubble{}, optimizer{};

  bool operator==(const StepParts&) const = default;
};

// A level of the machine: bytes that a step moves over it, of a device and of all.
struct LevelUse {
  std::string level;
  Bytes mean{}, most{}, all{};
  double share = 0;  // of the link's bandwidth, over the whole step, mean

  bool operator==(const LevelUse&) const = default;
};

struct SimulatedUse {
  Nanos step{};
  double tokens_per_second = 0, mfu = 0, hfu = 0;
  std::vector<StepParts> parts;
  std::vector<LevelUse> levels;
  std::optional<StepRange> range;  // of a machine with a profile

  bool operator==(const SimulatedUse&) const = default;
};

struct RunReport {
  std::string job;
  std::string machine = "emulated";  // or "simulated"
  std::int64_t parameters = 0;
  std::int64_t tokens = 0;  // trained on, all devices, all steps
  Nanos time{};             // of all steps
  std::vector<DeviceReport> devices;
  std::vector<StepReport> steps;
  std::optional<PacedUse> paced;
  std::optional<SimulatedUse> simulated;

  bool operator==(const RunReport&) const = default;
};

// What the devices have in sum, and where planned and executed differ.
struct ReportTotals {
  std::int64_t steps = 0;
  double tokens_per_second = 0;
  Bytes communication{};               // sent by all devices
  std::int64_t collectives = 0;        // started by all devices
  double exposed_communication = 0;    // share of the devices' time
  Bytes hbm_peak{};                    // of the fullest device
  std::vector<std::int32_t> off_plan;  // devices whose executed peak of some tier is not the planned one
};
ReportTotals totals(const RunReport& report);

// Keys in a fixed order, indented; read back exactly by report_from_json (but for NaN, see the docs).
std::string to_json(const RunReport& report);
// Throws kSyntax, at `place`.
RunReport report_from_json(const std::string& text, const std::string& place);
// Throws kMissingFile or kSyntax.
RunReport read_report(const std::filesystem::path& path);

// The same for people: compact tables. Devices with equal numbers share a row; many devices are shown as
// least, median and most.
std::string to_text(const RunReport& report);

}  // namespace hyperrun
