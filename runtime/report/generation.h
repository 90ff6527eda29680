// The results of a generation and the forecast of its passes, for programs that read JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/step_range.h"
#include "runtime/ir/tier.h"
#include "runtime/report/report.h"

namespace hyperrun {

struct GeneratedText {
  std::int64_t id = 0;               // number of the prompt
  std::string prompt, text;          // `text` is without the prompt
  std::vector<std::int32_t> tokens;  // tokens of the text
};
std::string to_json_line(const GeneratedText& text);  // without a newline

// One invocation of "prefill" or of "decode".
struct PassReport {
  std::string name;
  std::int64_t sequences = 0, tokens = 0;  // of each
  Nanos time{};
  Nanos exposed_communication{}, exposed_transfer{}, bubble{};
  TierBytes peaks{};               // peaks of a device
  std::optional<StepRange> range;  // range of the time, on a machine with a profile

  double tokens_per_second() const {
    return static_cast<double>(sequences * tokens) / (static_cast<double>(time.value) * 1e-9);
  }
};
std::string to_json(std::span<const PassReport> passes);

// Passes of one kind on the paced clock.
struct PacedPass {
  std::string name;
  std::int64_t sequences = 0, tokens = 0;  // of each
  PacedUse use;
};
struct PacedGeneration {
  std::vector<PacedPass> passes;
  Bytes planned_peak{}, executed_peak{};  // HBM of a device, the maximum over devices and passes
};
std::string to_json(const PacedGeneration& generation);

}  // namespace hyperrun
