#include "runtime/report/programs.h"

#include <fmt/core.h>

#include "runtime/ir/job.h"
#include "runtime/report/programs_json.h"

namespace hyperrun {

Json json_of(const ProgramsReport& r, const char* kind) {
  Json json;
  json["format"] = kProgramsFormat;
  json["kind"] = kind;
  json["job"] = r.job;
  json["parameters"] = r.parameters;
  json["devices"] = r.devices;
  json["steps"] = r.steps;
  json["clock"] = r.clock;
  if (r.clock == kPaced) json["dilation"] = r.dilation;
  json["seconds"] = r.seconds;
  json["utilisation"] = r.utilisation;
  json["programs"] = Json::array();
  for (const ProgramUse& p : r.programs)
    json["programs"].push_back(
        {{"name", p.name}, {"devices", p.devices}, {"runs", p.runs}, {"device_seconds", p.seconds}});
  return json;
}

void read_into(ProgramsReport& r, const Json& json) {
  r.job = json.at("job");
  r.parameters = whole(json, "parameters");
  r.devices = whole(json, "devices");
  r.steps = whole(json, "steps");
  r.clock = json.at("clock");
  if (r.clock == kPaced) r.dilation = json.at("dilation");
  r.seconds = json.at("seconds");
  r.utilisation = json.at("utilisation");
  for (const Json& p : json.at("programs"))
    r.programs.push_back({p.at("name"), whole(p, "devices"), whole(p, "runs"), p.at("device_seconds")});
}

std::string describe_use(const ProgramsReport& r) {
  std::string text;
  for (const ProgramUse& p : r.programs)
    text += fmt::format("  {:<28} {:3} devices, {:6} runs, {:5.1f} % of the time of each\n", p.name,
                        p.devices, p.runs,
                        r.seconds > 0 ? 100 * p.seconds / (r.seconds * static_cast<double>(p.devices)) : 0);
  return text;
}

}  // namespace hyperrun
