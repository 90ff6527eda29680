#include "runtime/report/generation.h"

#include "runtime/report/json.h"
#include "runtime/report/paced_json.h"
#include "runtime/report/range_json.h"

namespace hyperrun {

std::string to_json_line(const GeneratedText& t) {
  const Json line{{"id", t.id}, {"prompt", t.prompt}, {"text", t.text}, {"tokens", t.tokens}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(std::span<const PassReport> passes) {
  Json all;
  for (const PassReport& p : passes) {
    Json& out = all[p.name];
    out["sequences"] = p.sequences;
    out["tokens"] = p.tokens;
    out["ns"] = p.time.value;
    out["tokens_per_second"] = p.tokens_per_second();
    out["exposed_communication_ns"] = p.exposed_communication.value;
    out["exposed_transfer_ns"] = p.exposed_transfer.value;
    out["bubble_ns"] = p.bubble.value;
    for (const Tier tier : {Tier::kHbm, Tier::kPool, Tier::kFlash})
      out[std::string(name(tier)) + "_peak_bytes"] = p.peaks[index_of(tier)].value;
    if (p.range) out["range"] = to_json(*p.range);
  }
  return dump_indented(all);
}

std::string to_json(const PacedGeneration& generation) {
  Json all;
  for (const PacedPass& p : generation.passes)
    all[p.name] = {{"sequences", p.sequences}, {"tokens", p.tokens}, {"paced", to_object(p.use)}};
  all["hbm_planned_peak_bytes"] = generation.planned_peak.value;
  all["hbm_executed_peak_bytes"] = generation.executed_peak.value;
  return dump_indented(all);
}

}  // namespace hyperrun
