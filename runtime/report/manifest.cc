#include <fmt/core.h>

#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "runtime/report/json.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/version.h"

namespace hyperrun {
namespace {

// The time as "2026-01-31T23:59:59.123Z".
std::string utc(Nanos since_epoch) {
  std::time_t seconds = since_epoch.value / 1'000'000'000;
  auto millis = static_cast<int>(since_epoch.value / 1'000'000 % 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", date.data(), millis);
}

Json json_of(const GoodputParts& p) {
  return {{"goodput", p.goodput()},           {"seconds", p.seconds()},
          {"useful_seconds", p.useful},       {"slower_seconds", p.slower},
          {"saving_seconds", p.saving},       {"lost_seconds", p.lost},
          {"noticing_seconds", p.noticing},   {"waiting_seconds", p.waiting},
          {"starting_seconds", p.starting},   {"reading_seconds", p.reading},
          {"faults", std::llround(p.faults)}, {"returns_to_more_devices", std::llround(p.changes)}};
}

Json json_of(const Goodput& g) {
  Json json = json_of(g.executed);
  json["steps"] = g.steps;
  json["step_seconds"] = g.step;
  json["saves"] = g.saves;
  if (g.foretold) json["foretold"] = json_of(*g.foretold);
  return json;
}

}  // namespace

std::string to_json(const Manifest& m) {
  Json libraries = Json::object();
  for (const auto& [name, version] : m.libraries) libraries[name] = version;

  Json json;
  json["format"] = 1;
  json["job"] = m.job;
  json["state"] = m.state;
  json["exit_status"] = m.exit_status ? Json(*m.exit_status) : Json(nullptr);
  json["error"] = m.error.empty() ? Json(nullptr) : Json(m.error);
  json["start"] = utc(m.start);
  json["end"] = m.end ? Json(utc(*m.end)) : Json(nullptr);
  json["seed"] = m.seed;
  json["command_line"] = m.command_line;
  json["devices"] = m.hosts.size();
  json["ranks"] = m.ranks;
  json["hosts"] = m.hosts;
  json["restarts"] = Json::array();
  for (const Restart& r : m.restarts) {
    json["restarts"].push_back({{"after_step", r.after},
                                {"from_step", r.from},
                                {"error", r.cause},
                                {"time", utc(r.lost)},
                                {"seconds", static_cast<double>(r.time.value) / 1e9}});
    if (r.left_out.samples > 0)
      json["restarts"].back()["left_out"] = {{"first_sample", r.left_out.first},
                                             {"samples", r.left_out.samples}};
  }
  json["goodput"] = m.goodput ? json_of(*m.goodput) : Json(nullptr);
  json["hyperrun"] = {{"version", version()}, {"git_revision", git_revision()}};
  json["libraries"] = std::move(libraries);
  return dump_indented(json);
}

}  // namespace hyperrun
