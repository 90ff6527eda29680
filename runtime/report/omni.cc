#include "runtime/report/omni.h"

#include <fmt/core.h>

#include "runtime/base/median.h"
#include "runtime/report/programs_json.h"
#include "runtime/report/range_json.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

constexpr const char* kKind = "omni";

Json json_of(const OmniEvaluation& e) {
  Json json;
  json["step"] = e.step;
  json["encoder"] = e.encoder;
  json["held_back"] = e.samples;
  json["correct"] = e.correct;
  json["texts"] = e.texts;
  json["most_frequent"] = e.most_frequent;
  json["time_ns"] = e.time.value;
  return json;
}

OmniEvaluation evaluation_of(const Json& json) {
  return {whole(json, "step"),          json.at("encoder"),     whole(json, "held_back"),
          whole(json, "texts"),         whole(json, "correct"), whole(json, "most_frequent"),
          Nanos(whole(json, "time_ns"))};
}

OmniReport report_of(const Json& json) {
  OmniReport r;
  read_into(r, json);
  r.order = json.at("order");
  r.step_seconds = json.at("step_seconds").get<std::vector<double>>();
  for (const Json& e : json.at("evaluations")) r.evaluations.push_back(evaluation_of(e));
  return r;
}

}  // namespace

std::string to_json_line(const OmniMetrics& m) {
  Json json;
  json["step"] = m.step;
  put_number(json, "loss", m.loss);
  put_number(json, "grad_norm", m.grad_norm);
  put_number(json, "lr", m.lr);
  json["items"] = m.items;
  json["step_seconds"] = seconds(m.step_time);
  json["time_ns"] = m.time.value;
  return json.dump();
}

std::string to_json_line(const OmniEvaluation& evaluation) { return json_of(evaluation).dump(); }

std::string describe(const OmniEvaluation& e) {
  return fmt::format(
      "after {} steps: {} right of {} held back {:.1f} %, of {} texts (without looking at most {:.1f} %)",
      e.step, e.encoder, e.samples, 100 * e.share(), e.texts, 100 * e.without_looking());
}

std::string to_json(const OmniReport& r) {
  Json json = json_of(r, kKind);
  json["order"] = r.order;
  json["step_seconds"] = r.step_seconds;
  json["evaluations"] = Json::array();
  for (const OmniEvaluation& e : r.evaluations) json["evaluations"].push_back(json_of(e));
  return dump_indented(json);
}

std::optional<OmniReport> read_omni_report(const std::filesystem::path& path) {
  return read_report_of(kKind, path, report_of);
}

std::string to_json(const OmniForecast& f) {
  Json json;
  json["format"] = kProgramsFormat;
  json["kind"] = "omni forecast";
  json["job"] = f.job;
  json["devices"] = f.devices;
  json["steps"] = f.steps;
  json["items"] = Json::array();
  for (const OmniForecast::Load& l : f.loads)
    json["items"].push_back({{"encoder", l.encoder}, {"least", l.least}, {"mean", l.mean}, {"most", l.most}});
  json["programs"] = Json::array();
  for (const OmniForecast::Run& r : f.runs)
    json["programs"].push_back(
        {{"program", r.program}, {"what", r.what}, {"devices", r.devices}, {"seconds", seconds(r.lasts)}});
  json["orders"] = Json::array();
  for (const OmniForecast::Ordered& o : f.orders)
    json["orders"].push_back({{"order", o.order}, {"step_seconds", seconds(o.step)}, {"bubble", o.bubble}});
  if (f.range) json["range"] = to_json(*f.range);
  return dump_indented(json);
}

std::string to_text(const OmniForecast& f) {
  std::string text =
      fmt::format("{}: {} devices, simulated, the mean of {} steps\n\n", f.job, f.devices, f.steps);
  Table loads({left("encoder"), right("items of a micro-batch: least"), right("mean"), right("most")});
  for (const OmniForecast::Load& l : f.loads)
    loads.row({l.encoder, std::to_string(l.least), fmt::format("{:.1f}", l.mean), std::to_string(l.most)});
  Table runs({left("program"), left("does"), right("devices"), right("lasts")});
  for (const OmniForecast::Run& r : f.runs)
    runs.row({r.program, r.what, std::to_string(r.devices), to_string(r.lasts)});
  Table orders({left("order"), right("step"), right("bubble"), right("steps a second")});
  for (const OmniForecast::Ordered& o : f.orders)
    orders.row({o.order, to_string(o.step), fmt::format("{:.1f} %", 100 * o.bubble),
                fmt::format("{:.3f}x", static_cast<double>(f.orders.front().step.value) /
                                           static_cast<double>(o.step.value))});
  return text + loads.str("  ") + "\n" + runs.str("  ") + "\n" + orders.str("  ");
}

std::string to_text(const OmniReport& r) {
  std::string text =
      fmt::format("{} steps in {:.1f} s (order: {}); a device is in a program {:.1f} % of the time\n",
                  r.steps, r.seconds, r.order, 100 * r.utilisation);
  if (!r.step_seconds.empty())
    text += fmt::format("a step takes {:.4g} s, the median\n", median(r.step_seconds));
  text += describe_use(r);
  for (const OmniEvaluation& e : r.evaluations) text += describe(e) + "\n";
  return text;
}

}  // namespace hyperrun
