// JSON and CSV of what faults cost.
#include <fmt/core.h>

#include <cmath>

#include "runtime/report/faults/text.h"
#include "runtime/report/json.h"

namespace hyperrun {
namespace {

Json parts_json(const FaultOutcome& m, double horizon) {
  return {{"useful", m.useful / horizon},     {"slower", m.slower / horizon},
          {"saving", m.saving / horizon},     {"lost", m.lost / horizon},
          {"noticing", m.noticing / horizon}, {"waiting", m.waiting / horizon},
          {"starting", m.starting / horizon}, {"reading", m.reading / horizon}};
}

Json interval_json(const FaultRow& row) {
  const FaultIntervals& i = row.interval;
  Json json{{"saves", row.policy.copies ? "memory" : "disk"}, {"best_steps", i.best_steps}};
  put_number(json, "best_seconds", i.best);
  put_number(json, "young_seconds", i.young);
  put_number(json, "daly_seconds", i.daly);
  put_number(json, "expected_goodput_without_waiting", i.expected);
  return json;
}

Json row_json(const FaultRow& row, double horizon) {
  Json json{{"policy", row.policy.name},
            {"goodput", row.goodput.mean},
            {"goodput_within", row.goodput.within},
            {"goodput_of_all_devices", row.of_all},
            {"faults", row.mean.faults},
            {"returns_to_more_devices", row.mean.changes},
            {"shares", parts_json(row.mean, horizon)},
            {"interval", interval_json(row)}};
  json["curve"] = Json::array();
  for (const FaultPoint& p : row.curve)
    json["curve"].push_back(
        {{"steps", p.steps}, {"goodput", p.goodput.mean}, {"goodput_within", p.goodput.within}});
  return json;
}

Json scale_json(const FaultScale& scale, const FaultModel& spec) {
  const FaultCosts& c = scale.costs;
  Json json{{"devices", scale.run.devices}, {"devices_of_a_replica", scale.run.replica}};
  json["spares"] = spares_of(spec, scale.run.devices);
  put_number(json, "seconds_between_faults", scale.mtbf);
  json["step_seconds"] = c.step;
  json["save"] = {{"stall_seconds", c.disk.stall}, {"usable_after_seconds", c.disk.latency}};
  json["copy"] = {{"stall_seconds", c.copy.stall}, {"usable_after_seconds", c.copy.latency}};
  json["read_seconds"] = c.read;
  json["fetch_seconds"] = c.fetch;
  json["policies"] = Json::array();
  for (const FaultRow& row : scale.rows) json["policies"].push_back(row_json(row, spec.horizon));
  return json;
}

std::string csv_line(const FaultScale& scale, const FaultRow& row, double horizon) {
  const FaultOutcome& m = row.mean;
  std::string line = fmt::format("{},{},{:.6f},{:.6f},{:.6f}", scale.run.devices, row.policy.name,
                                 row.goodput.mean, row.goodput.within, row.of_all);
  for (const double part : {m.saving, m.lost, m.noticing, m.waiting, m.starting, m.reading, m.slower})
    line += fmt::format(",{:.6f}", part / horizon);
  const FaultIntervals& i = row.interval;
  return line +
         fmt::format(",{:.3f},{},{:.3f},{:.3f},{:.3f}\n", m.faults, i.best_steps, i.best, i.young, i.daly);
}

}  // namespace

std::string to_json(const FaultStudy& study) {
  const FaultModel& s = study.spec;
  Json json{{"job", study.job}, {"simulated", true}, {"faults", s.name}};
  if (!s.about.empty()) json["about"] = s.about;
  json["horizon_seconds"] = s.horizon;
  json["samples"] = s.samples;
  json["seed"] = s.seed;
  json["state_bytes"] = study.scales.front().run.state_bytes;
  json["smaller_world"] = {{"share", study.scales.front().run.smaller_share},
                           {"speed", study.scales.front().run.smaller_speed},
                           {"assumed", study.smaller}};
  json["scales"] = Json::array();
  for (const FaultScale& scale : study.scales) json["scales"].push_back(scale_json(scale, s));
  return dump_indented(json);
}

std::string to_csv(const FaultStudy& study) {
  std::string out =
      "devices,policy,goodput,goodput_within,goodput_of_all,saving,lost,noticing,waiting,starting,reading,"
      "slower,"
      "faults,best_steps,best_seconds,young_seconds,daly_seconds\n";
  for (const FaultScale& scale : study.scales)
    for (const FaultRow& row : scale.rows) out += csv_line(scale, row, study.spec.horizon);
  return out;
}

}  // namespace hyperrun
