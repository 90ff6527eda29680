#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/report/file.h"
#include "runtime/report/json.h"
#include "runtime/report/paced_json.h"
#include "runtime/report/range_json.h"
#include "runtime/report/report.h"

namespace hyperrun {
namespace {

constexpr int kFormat = 1;

template <class T, class F>
Json array(const std::vector<T>& items, F convert) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(convert(item));
  return out;
}

template <class T, class F>
std::vector<T> items(const Json& json, F convert) {
  std::vector<T> out;
  for (const auto& item : json) out.push_back(convert(item));
  return out;
}

Json put(const CategoryUse& c) {
  return {{"category", c.category}, {"planned_bytes", c.planned.value}, {"executed_bytes", c.executed.value}};
}
CategoryUse category(const Json& j) {
  return {j.at("category"), Bytes(whole(j, "planned_bytes")), Bytes(whole(j, "executed_bytes"))};
}

Json put(const TierUse& t) {
  return {{"tier", t.tier},
          {"budget_bytes", t.budget.value},
          {"planned_peak_bytes", t.planned_peak.value},
          {"executed_peak_bytes", t.executed_peak.value},
          {"at_peak", array(t.categories, [](const auto& c) { return put(c); })}};
}
TierUse tier(const Json& j) {
  return {j.at("tier"), Bytes(whole(j, "budget_bytes")), Bytes(whole(j, "planned_peak_bytes")),
          Bytes(whole(j, "executed_peak_bytes")), items<CategoryUse>(j.at("at_peak"), category)};
}

Json put(const CollectiveUse& c) {
  Json json = {{"collective", c.collective}, {"axis", c.axis}, {"count", c.count}, {"bytes", c.bytes.value}};
  if (c.time.value == 0) return json;
  json["time_ns"] = c.time.value;
  json["exposed_ns"] = c.exposed.value;
  return json;
}
CollectiveUse collective(const Json& j) {
  const auto time = [&](const char* key) { return Nanos(j.contains(key) ? whole(j, key) : 0); };
  return {j.at("collective"),       j.at("axis"),    whole(j, "count"),
          Bytes(whole(j, "bytes")), time("time_ns"), time("exposed_ns")};
}

Json put(const TransferUse& t) {
  return {{"transfer", t.transfer},
          {"tier", t.tier},
          {"count", t.count},
          {"bytes", t.bytes.value},
          {"other_hosts_bytes", t.elsewhere.value}};
}
TransferUse transfer(const Json& j) {
  return {j.at("transfer"), j.at("tier"), whole(j, "count"), Bytes(whole(j, "bytes")),
          Bytes(j.contains("other_hosts_bytes") ? whole(j, "other_hosts_bytes") : 0)};
}

Json put(const StreamUse& s) { return {{"stream", s.stream}, {"busy_ns", s.busy.value}}; }
StreamUse stream(const Json& j) { return {j.at("stream"), Nanos(whole(j, "busy_ns"))}; }

double share(Nanos part, Nanos whole) {
  return whole.value > 0 ? static_cast<double>(part.value) / static_cast<double>(whole.value) : 0;
}

Json put(const DeviceReport& d) {
  return {{"device", d.device},
          {"host", d.host},
          {"time_ns", d.time.value},
          {"exposed_communication_ns", d.exposed_communication.value},
          {"exposed_communication", share(d.exposed_communication, d.time)},
          {"memory", array(d.tiers, [](const auto& t) { return put(t); })},
          {"collectives", array(d.collectives, [](const auto& c) { return put(c); })},
          {"transfers", array(d.transfers, [](const auto& t) { return put(t); })},
          {"streams", array(d.streams, [](const auto& s) { return put(s); })}};
}
DeviceReport device(const Json& j) {
  DeviceReport d;
  d.device = j.at("device");
  d.host = j.at("host");
  d.time = Nanos(whole(j, "time_ns"));
  d.exposed_communication = Nanos(whole(j, "exposed_communication_ns"));
  d.tiers = items<TierUse>(j.at("memory"), tier);
  d.collectives = items<CollectiveUse>(j.at("collectives"), collective);
  d.transfers = items<TransferUse>(j.at("transfers"), transfer);
  d.streams = items<StreamUse>(j.at("streams"), stream);
  return d;
}

void put_optional(Json& json, std::string_view key, const std::optional<double>& value) {
  if (value) {
    put_number(json, key, *value);
  } else {
    json[std::string(key)] = nullptr;
  }
}

Json put(const StepReport& s) {
  Json json;
  json["step"] = s.step;
  put_optional(json, "loss", s.loss);
  put_optional(json, "grad_norm", s.grad_norm);
  json["time_ns"] = s.time.value;
  return json;
}
StepReport step(const Json& j) {
  return {j.at("step"), get_number(j, "loss"), get_number(j, "grad_norm"), Nanos(whole(j, "time_ns"))};
}

Json put(const StepParts& p) {
  return {{"device", p.first},
          {"devices", p.devices},
          {"compute_ns", p.compute.value},
          {"communication_ns", p.communication.value},
          {"transfer_ns", p.transfer.value},
          {"bubble_ns", p.bubble.value},
          {"optimizer_ns", p.optimizer.value}};
}
StepParts step_parts(const Json& j) {
  const auto part = [&](const char* key) { return Nanos(whole(j, key)); };
  return {j.at("device"),      j.at("devices"),   part("compute_ns"),  part("communication_ns"),
          part("transfer_ns"), part("bubble_ns"), part("optimizer_ns")};
}

Json put(const LevelUse& l) {
  return {{"level", l.level},
          {"mean_bytes", l.mean.value},
          {"most_bytes", l.most.value},
          {"all_bytes", l.all.value},
          {"share", l.share}};
}
LevelUse level(const Json& j) {
  return {j.at("level"), Bytes(whole(j, "mean_bytes")), Bytes(whole(j, "most_bytes")),
          Bytes(whole(j, "all_bytes")), j.at("share")};
}

Json put(const SimulatedUse& s) {
  Json json{{"step_ns", s.step.value},
            {"tokens_per_second", s.tokens_per_second},
            {"mfu", s.mfu},
            {"hfu", s.hfu},
            {"parts", array(s.parts, [](const auto& p) { return put(p); })},
            {"levels", array(s.levels, [](const auto& l) { return put(l); })}};
  if (s.range) json["range"] = to_json(*s.range);
  return json;
}
SimulatedUse simulated(const Json& j) {
  return {Nanos(whole(j, "step_ns")),
          j.at("tokens_per_second"),
          j.at("mfu"),
          j.at("hfu"),
          items<StepParts>(j.at("parts"), step_parts),
          items<LevelUse>(j.at("levels"), level),
          j.contains("range") ? std::optional(range_from(j.at("range"))) : std::nullopt};
}

Json put(const ReportTotals& t) {
  return {{"steps", t.steps},
          {"tokens_per_second", t.tokens_per_second},
          {"communication_bytes", t.communication.value},
          {"collectives", t.collectives},
          {"exposed_communication", t.exposed_communication},
          {"hbm_peak_bytes", t.hbm_peak.value},
          {"devices_off_plan", t.off_plan}};
}

}  // namespace

ReportTotals totals(const RunReport& report) {
  ReportTotals t;
  t.steps = static_cast<std::int64_t>(report.steps.size());
  if (report.time.value > 0) t.tokens_per_second = static_cast<double>(report.tokens) / seconds(report.time);
  Nanos exposed{}, time{};
  for (const auto& d : report.devices) {
    for (const auto& c : d.collectives) {
      t.communication += c.bytes;
      t.collectives += c.count;
    }
    bool off = false;
    for (const auto& tier : d.tiers) {
      if (tier.tier == "hbm") t.hbm_peak = std::max(t.hbm_peak, tier.executed_peak);
      off = off || tier.planned_peak != tier.executed_peak;
    }
    if (off && t.steps > 0) t.off_plan.push_back(d.device);  // without a step nothing was used
    exposed += d.exposed_communication;
    time += d.time;
  }
  t.exposed_communication = share(exposed, time);
  return t;
}

std::string to_json(const RunReport& report) {
  Json json;
  json["format"] = kFormat;
  json["job"] = report.job;
  json["machine"] = report.machine;
  json["parameters"] = report.parameters;
  json["tokens"] = report.tokens;
  json["time_ns"] = report.time.value;
  json["totals"] = put(totals(report));
  json["devices"] = array(report.devices, [](const auto& d) { return put(d); });
  json["steps"] = array(report.steps, [](const auto& s) { return put(s); });
  if (report.paced) json["paced"] = to_object(*report.paced);
  if (report.simulated) json["simulated"] = put(*report.simulated);
  return dump_indented(json);
}

namespace {

// The exception's text without the library's own marks.
std::string cause_of(const Json::exception& e) {
  const std::string text = e.what();
  const std::size_t end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

}  // namespace

RunReport report_from_json(const std::string& text, const std::string& place) {
  const char* const again = "run the job again";
  try {
    Json json = Json::parse(text);
    if (json.at("format") != kFormat) {
      throw Error(Code::kSyntax, "has format " + json.at("format").dump())
          .at(place)
          .legal(std::to_string(kFormat))
          .fix("read it with the hyperrun that wrote it (manifest.json names its version)");
    }
    RunReport r;
    r.job = json.at("job");
    r.machine = json.at("machine");
    r.parameters = whole(json, "parameters");
    r.tokens = whole(json, "tokens");
    r.time = Nanos(whole(json, "time_ns"));
    r.devices = items<DeviceReport>(json.at("devices"), device);
    r.steps = items<StepReport>(json.at("steps"), step);
    if (json.contains("paced")) r.paced = paced_from(json.at("paced"));
    if (json.contains("simulated")) r.simulated = simulated(json.at("simulated"));
    return r;
  } catch (const Json::exception& e) {
    throw Error(Code::kSyntax, "is no report: " + cause_of(e))
        .at(place)
        .legal("a report.json as a run writes it")
        .fix(again);
  } catch (Error& e) {
    if (e.place().empty()) e.at(place).fix(again);
    throw;
  }
}

RunReport read_report(const std::filesystem::path& path) {
  return report_from_json(read_whole_file(path), path.string());
}

}  // namespace hyperrun
