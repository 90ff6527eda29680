#include "runtime/report/paced.h"

#include <fmt/core.h>

#include "runtime/report/paced_json.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

std::string error_percent(Nanos predicted, Nanos measured) {
  if (predicted.value == 0) return "-";
  return fmt::format("{:+.2f}%",
                     100 * (static_cast<double>(measured.value) / static_cast<double>(predicted.value) - 1));
}

}  // namespace

std::string describe_paced(const PacedUse& paced, std::string_view what, std::string_view times) {
  if (paced.steps == 0) return "";
  Table table({left("instruction"), right("count"), right("predicted"), right("measured"), right("error")});
  for (const PacedInstruction& i : paced.instructions)
    table.row({i.instruction, with_separators(i.count), to_string(i.predicted), to_string(i.measured),
               error_percent(i.predicted, i.measured)});
  std::string text = fmt::format(
      "paced clock, time stretched {:g}-fold: {} takes {}, the simulator says {} ({}; {} {} measured)\n",
      paced.dilation, what, to_string(paced.measured), to_string(paced.predicted),
      error_percent(paced.predicted, paced.measured), paced.steps, times);
  if (paced.original_peak.value > 0)
    text += "the small model ran to the scale of one that takes " + to_string(paced.original_peak) +
            " of a device's HBM\n";
  constexpr double kTooLate = 1.03;
  if (static_cast<double>(paced.measured.value) > kTooLate * static_cast<double>(paced.predicted.value))
    text +=
        "the host was too busy to keep to the clock: with a larger run.dilation, or less other work, it "
        "can\n";
  return text + table.str("  ");
}

Json to_object(const PacedUse& p) {
  Json instructions = Json::array();
  for (const PacedInstruction& i : p.instructions)
    instructions.push_back({{"instruction", i.instruction},
                            {"count", i.count},
                            {"predicted_ns", i.predicted.value},
                            {"measured_ns", i.measured.value}});
  return {{"dilation", p.dilation},
          {"steps", p.steps},
          {"predicted_ns", p.predicted.value},
          {"measured_ns", p.measured.value},
          {"instructions", std::move(instructions)},
          {"original_hbm_peak_bytes", p.original_peak.value}};
}

PacedUse paced_from(const Json& j) {
  PacedUse p{j.at("dilation"),
             whole(j, "steps"),
             Nanos(whole(j, "predicted_ns")),
             Nanos(whole(j, "measured_ns")),
             {},
             Bytes(whole(j, "original_hbm_peak_bytes"))};
  for (const Json& i : j.at("instructions"))
    p.instructions.push_back({i.at("instruction"), whole(i, "count"), Nanos(whole(i, "predicted_ns")),
                              Nanos(whole(i, "measured_ns"))});
  return p;
}

}  // namespace hyperrun
