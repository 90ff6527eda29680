// JSON, CSV (tables derived from the JSON) and SVG of the planner's answers.
#include <fmt/core.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "runtime/base/joined.h"
#include "runtime/report/json.h"
#include "runtime/report/plan/text.h"
#include "runtime/report/plan_chart.h"
#include "runtime/report/range_json.h"

namespace hyperrun {
namespace {

Json to_json(const Breakdown& parts) {
  return {{"compute", parts.compute.value},
          {"communication", parts.communication.value},
          {"transfer", parts.transfer.value},
          {"bubble", parts.bubble.value},
          {"optimizer", parts.optimizer.value}};
}

Json simulated_json(const SimulatedCandidate& l) {
  Json json{{"micro_batches", l.micro_batches}};
  if (l.simulated > 0) {
    json["step_ns"] = l.simulated;
    json["mfu"] = l.mfu;
  }
  if (l.simulated > 0 || l.hbm.value > 0) {  // even if it does not fit
    json["hbm_bytes"] = l.hbm.value;
    json["pool_bytes"] = l.pool.value;
  }
  if (l.simulated == 0) {
    json["refused"] = l.why_not;
    return json;
  }
  json["parts_ns"] = to_json(l.parts);
  json["busiest_parts_ns"] = to_json(l.busiest);
  return json;
}

// All fields of a candidate.
Json to_json(const SimulatedCandidate& l) {
  Json json = simulated_json(l);
  json["strategy"] = describe(l.strategy);
  json["mesh"] = Json::object();
  for (const MeshAxis& axis : mesh_of(l.strategy)) json["mesh"][axis.name] = axis.size;
  if (l.forecast.time > 0) json["forecast_ns"] = l.forecast.time;
  if (l.forecast.bound > 0) json["bound_ns"] = l.forecast.bound;
  return json;
}

Json to_json(const GroupLocation& location) {
  return {{"levels", location.levels}, {"side_by_side", location.members_below}};
}

Json to_json(const Fusion& fusion) {
  Json json{{"axes", Json::array()}, {"groups", Json::array()}};
  for (const AxisLocation& a : fusion.axes)
    json["axes"].push_back(
        {{"axis", a.axis}, {"size", a.size}, {"stride", a.stride}, {"lies", to_json(a.location)}});
  for (const FusedAxes& g : fusion.groups) {
    Json group{{"axes", g.axes}, {"devices", g.devices}, {"lies", to_json(g.location)}};
    for (const FusedUse& u : g.uses)
      group["uses"].push_back({{"collective", u.collective},
                               {"moved", name(u.moved)},
                               {"pass", pass_text(u.pass)},
                               {"count", u.count},
                               {"bytes", u.bytes},
                               {"largest", u.largest}});
    json["groups"].push_back(group);
  }
  return json;
}

// The gap is null unless it certifies something, so that programs cannot misread it.
Json certificate_json(double gap) {
  const bool is_one = is_informative(gap);
  return {{"certified", is_one}, {"gap", is_one ? Json(gap) : Json()}};
}

Json to_json(const Front& front) {
  Json json{{"points", Json::array()}, {"devices", Json::array()}};
  for (const FrontPoint& p : front.points) {
    Json point{{"devices", p.devices}, {"budget_bytes", p.budget.value}};
    point.update(certificate_json(p.gap));
    point.update(to_json(p.leader));
    json["points"].push_back(point);
  }
  for (const FrontCount& c : front.counts)
    json["devices"].push_back({{"devices", c.devices},
                               {"fits", c.fits},
                               {"divides", c.divides},
                               {"is_meant", c.meets_constraints},
                               {"needs_bytes", c.needs.value}});
  return json;
}

Json to_json(const BestOf& other, const SimulatedCandidate& best) {
  Json json{{"space", other.space}};
  if (other.leader) {
    json.update(to_json(*other.leader));
    json["gain"] = other.leader->simulated / best.simulated;
  } else
    json["refused"] = why_none(other);
  return json;
}

Json to_json(const WhatIf& w) {
  return {{"figure", w.figure},      {"factor", w.factor}, {"present", to_json(w.present)},
          {"best", to_json(w.best)}, {"other", w.other()}, {"gain", w.gain() > 0 ? Json(w.gain()) : Json()},
          {"searched", w.searched}};
}

Json to_json(const Verdict& v) {
  Json json{{"key", v.key}, {"dimension", v.dimension}, {"value", v.value}, {"chosen", v.chosen}};
  if (v.strategy) json["strategy"] = describe(*v.strategy);
  if (v.simulated > 0) json["step_ns"] = v.simulated;
  if (v.forecast > 0) json["forecast_ns"] = v.forecast;
  if (v.bound > 0) json["bound_ns"] = v.bound;
  json["sentence"] = v.sentence;
  return json;
}

Json to_json(const Robustness& r) {
  Json json{{"circumstances", r.circumstances}, {"plans", Json::array()}};
  for (std::size_t p = 0; p < r.plans.size(); ++p) {
    Json plan{{"strategy", describe(r.plans[p].strategy)}, {"steps_ns", Json::array()}};
    for (const double step : r.plans[p].steps)  // null: it does not fit
      plan["steps_ns"].push_back(std::isfinite(step) ? Json(step) : Json());
    const double loss = r.worst_loss(p);
    plan["fits_everywhere"] = r.fits_everywhere(p);
    plan["worst_loss"] = std::isfinite(loss) ? Json(loss) : Json();
    plan["range"] = to_json(r.plans[p].range);
    json["plans"].push_back(plan);
  }
  if (r.plans.empty()) return json;
  json["without_room"] = Json::array();
  for (const std::size_t c : r.without_room()) json["without_room"].push_back(r.circumstances[c]);
  json["least_hbm_bytes"] = r.least_hbm;
  json["always_first"] = r.is_always_first(0) && r.fits_everywhere(0);
  json["steadiest"] = r.steadiest();
  if (r.simpler)
    json["simpler"] = {
        {"plan", r.simpler->plan}, {"behind", r.simpler->behind}, {"reason", r.simpler->reason}};
  return json;
}

Json to_json(const PlanAnswers& answers) {
  const Search& s = answers.search;
  Json json{
      {"space", answers.space.name},       {"strategies", s.strategies}, {"do_not_divide", s.do_not_divide},
      {"do_not_fit", s.do_not_fit},        {"bounded", s.bounded},       {"forecast", s.forecast},
      {"certificate", certificate_text(s)}};
  if (!answers.interrupted.empty()) json["interrupted"] = answers.interrupted;
  json.update(certificate_json(s.gap()));
  if (answers.own) {
    json["own"] = simulated_json(answers.own->leader);
    json["own"]["in_space"] = answers.own->in_space;
  }
  for (const SimulatedCandidate& l : s.leaders) json["leaders"].push_back(to_json(l));
  for (const Verdict& v : answers.why) json["why"].push_back(to_json(v));
  json["fusion"] = to_json(answers.fusion);
  if (answers.front) json["front"] = to_json(*answers.front);
  for (const BestOf& other : answers.others) json["comparison"].push_back(to_json(other, s.leaders.front()));
  if (answers.what_ifs)
    for (const WhatIf& w : *answers.what_ifs) json["what_ifs"].push_back(to_json(w));
  if (answers.proof) json["proof"] = to_json(*answers.proof);
  if (answers.robust) json["robustness"] = to_json(*answers.robust);
  return json;
}

// A CSV column: its JSON pointer in a row, and its format. `digits` is the number of decimals, or if negative
// the number of significant digits.
struct CsvColumn {
  std::string_view title, where;
  int digits = 0;
};
using CsvColumns = std::vector<CsvColumn>;

CsvColumns both(CsvColumns first, const CsvColumns& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Columns of simulated figures, or the reason of a refusal.
CsvColumns use_columns() {
  return {{"mfu", "/mfu", -6},
          {"hbm_bytes", "/hbm_bytes"},
          {"pool_bytes", "/pool_bytes"},
          {"compute_ns", "/parts_ns/compute"},
          {"communication_ns", "/parts_ns/communication"},
          {"transfer_ns", "/parts_ns/transfer"},
          {"bubble_ns", "/parts_ns/bubble"},
          {"optimizer_ns", "/parts_ns/optimizer"},
          {"busiest_compute_ns", "/busiest_parts_ns/compute"},
          {"busiest_bubble_ns", "/busiest_parts_ns/bubble"},
          {"refused", "/refused"}};
}

CsvColumns leader_columns() {
  return both({{"strategy", "/strategy"},
               {"step_ns", "/step_ns"},
               {"forecast_ns", "/forecast_ns"},
               {"bound_ns", "/bound_ns"}},
              use_columns());
}

// Puts text with blanks, commas, quotes or line breaks in quotes.
std::string quoted(const std::string& text) {
  if (text.find_first_of(" ,\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c == '\n' ? ' ' : c);
  return out + "\"";
}

std::string joined_names(const Json& list) { return joined(list.get<std::vector<std::string>>(), " or "); }

// Empty if the row lacks the field.
std::string field(const Json& row, const CsvColumn& column) {
  const Json::json_pointer where{std::string(column.where)};
  const Json value = row.contains(where) ? row.at(where) : Json();
  if (value.is_null()) {  // put_number() keeps the name of a number that is not finite
    const auto name = Json::json_pointer("/not_finite") / where;
    return row.contains(name) ? row.at(name).get<std::string>() : "";
  }
  if (value.is_array()) return quoted(joined_names(value));
  if (value.is_number_float())
    return column.digits < 0 ? fmt::format("{:.{}g}", value.get<double>(), -column.digits)
                             : fmt::format("{:.{}f}", value.get<double>(), column.digits);
  return value.is_string() ? quoted(value.get<std::string>()) : value.dump();
}

std::string line_of(const Json& row, const CsvColumns& columns) {
  std::string line;
  for (const CsvColumn& c : columns) line += (&c == columns.data() ? "" : ",") + field(row, c);
  return line + "\n";
}

// Empty if there are no rows.
std::string table(const Json& rows, const CsvColumns& columns) {
  if (rows.empty()) return "";
  std::string text = "\n";
  for (const CsvColumn& c : columns) text += (&c == columns.data() ? "" : ",") + std::string(c.title);
  text += "\n";
  for (const Json& row : rows) text += line_of(row, columns);
  return text;
}

// One row for each inner row, with the fields of its outer row.
Json flattened(const Json& rows, const std::string& inner) {
  Json all = Json::array();
  for (const Json& row : rows)
    for (std::size_t i = 0; i < row.at(inner).size(); ++i) {
      Json& one = all.emplace_back(row);
      one.erase(inner);
      one["index"] = i + 1;
      one.update(row.at(inner)[i]);
    }
  return all;
}

std::string fusion_csv(const Json& fusion) {
  return table(fusion["axes"], {{"axis", "/axis"},
                                {"devices", "/size"},
                                {"ranks_apart", "/stride"},
                                {"lies_in", "/lies/levels"},
                                {"side_by_side", "/lies/side_by_side"}}) +
         table(flattened(fusion["groups"], "uses"), {{"axes", "/axes"},
                                                     {"devices", "/devices"},
                                                     {"lies_in", "/lies/levels"},
                                                     {"side_by_side", "/lies/side_by_side"},
                                                     {"collective", "/collective"},
                                                     {"moved", "/moved"},
                                                     {"pass", "/pass"},
                                                     {"count", "/count"},
                                                     {"bytes", "/bytes"},
                                                     {"largest", "/largest"}});
}

std::string front_csv(const Json& front) {
  return table(front["points"],
               both({{"devices", "/devices"}, {"budget_bytes", "/budget_bytes"}, {"gap", "/gap", -6}},
                    leader_columns())) +
         table(front["devices"], {{"devices", "/devices"},
                                  {"fits", "/fits"},
                                  {"divides", "/divides"},
                                  {"is_meant", "/is_meant"},
                                  {"needs_bytes", "/needs_bytes"}});
}

std::string what_ifs_csv(Json list) {
  for (Json& what_if : list) what_if.update(Json(what_if["best"]));
  return table(list, both({{"figure", "/figure"},
                           {"factor", "/factor", -3},
                           {"present_ns", "/present/step_ns"},
                           {"gain", "/gain", -6}},
                          leader_columns()));
}

std::string proof_csv(const Json& proof) {
  return table(Json::array({proof}), {{"devices", "/devices"},
                                      {"layers", "/layers"},
                                      {"batch", "/batch"},
                                      {"hbm_bytes", "/hbm_bytes"},
                                      {"pool_bytes", "/pool_bytes"},
                                      {"spearman", "/spearman", -6},
                                      {"best_behind", "/best_behind", -6},
                                      {"losses_proven", "/proven/losses"},
                                      {"order_proven", "/proven/order"},
                                      {"times_proven", "/proven/times"}}) +
         table(proof["plans"], {{"strategy", "/strategy"},
                                {"forecast_ns", "/forecast_ns"},
                                {"simulated_ns", "/simulated_ns"},
                                {"measured_ns", "/measured_ns"},
                                {"dilation", "/dilation", -6},
                                {"hidden", "/executed/hidden"},
                                {"sequence", "/executed/sequence"},
                                {"vocab", "/executed/vocab"}}) +
         table(flattened(proof["plans"], "steps"), {{"strategy", "/strategy"},
                                                    {"step", "/index"},
                                                    {"loss", "/loss", -9},
                                                    {"one_device", "/one_device", -9},
                                                    {"allowed", "/allowed", -3}});
}

// One row for each plan on each machine, and one for each guess of each plan.
std::string robust_csv(const Json& robust) {
  Json steps = Json::array(), guesses = Json::array();
  for (const Json& plan : robust["plans"]) {
    for (std::size_t c = 0; c < plan["steps_ns"].size(); ++c)
      steps.push_back({{"where", robust["circumstances"][c]},
                       {"strategy", plan["strategy"]},
                       {"step_ns", plan["steps_ns"][c]}});
    for (Json guess : plan["range"]["guesses"]) {
      guess["strategy"] = plan["strategy"];
      guesses.push_back(guess);
    }
  }
  return table(steps, {{"where", "/where"}, {"strategy", "/strategy"}, {"step_ns", "/step_ns"}}) +
         table(guesses, {{"guess", "/figure"},
                         {"strategy", "/strategy"},
                         {"value", "/value", -6},
                         {"low", "/low", -6},
                         {"high", "/high", -6},
                         {"step_at_low_ns", "/step_at_low_ns"},
                         {"step_at_high_ns", "/step_at_high_ns"}});
}

}  // namespace

std::string plan_json(const PlanAnswers& answers) { return dump_indented(to_json(answers)); }

std::string interrupted_json(std::string_view what) { return dump_indented({{"interrupted", what}}); }

std::string plan_csv(const PlanAnswers& answers) {
  const Json json = to_json(answers);
  const auto rows = [&](const char* name) { return json.contains(name) ? json[name] : Json::array(); };
  std::string text = table(rows("leaders"), leader_columns()) +
                     table(Json::array({json}), {{"strategies", "/strategies"},
                                                 {"do_not_divide", "/do_not_divide"},
                                                 {"do_not_fit", "/do_not_fit"},
                                                 {"bounded", "/bounded"},
                                                 {"forecast", "/forecast"},
                                                 {"gap", "/gap", -6},
                                                 {"certificate", "/certificate"}});
  if (answers.own)
    text += table(Json::array({json["own"]}),
                  both({{"own_in_space", "/in_space"}, {"step_ns", "/step_ns"}}, use_columns()));
  text += fusion_csv(json["fusion"]);
  text += table(rows("why"), {{"key", "/key"},
                              {"dimension", "/dimension"},
                              {"value", "/value"},
                              {"chosen", "/chosen"},
                              {"strategy", "/strategy"},
                              {"step_ns", "/step_ns"},
                              {"forecast_ns", "/forecast_ns"},
                              {"bound_ns", "/bound_ns"},
                              {"sentence", "/sentence"}});
  if (answers.front) text += front_csv(json["front"]);
  text += what_ifs_csv(rows("what_ifs"));
  if (answers.proof) text += proof_csv(json["proof"]);
  if (answers.robust) text += robust_csv(json["robustness"]);
  return (text + table(rows("comparison"),
                       both(both({{"space", "/space"}}, leader_columns()), {{"gain", "/gain", -6}})))
      .substr(1);
}

std::string plan_svg(const PlanAnswers& answers) {
  const Search& s = answers.search;
  const SupernodeSpec& spec = answers.job.supernode;
  const std::string name = answers.job.name.empty() ? "plan" : answers.job.name;
  PlanChart chart{
      .title = name + ": the best strategies",
      .subtitle = fmt::format("{} devices of {}, batch {}; simulated ({})", spec.devices, to_string(spec.hbm),
                              answers.job.training.batch, machine_of(spec).name),
      .parts = {"compute", "exposed communication", "transfer", "bubble", "optimizer"},
      .bound = s.bounds_hold && is_informative(s.gap()) ? s.leaders.front().simulated / (1 + s.gap()) : 0,
      .budget = spec.hbm.value,
      .note = certificate_text(s)};
  for (const SimulatedCandidate& l : s.leaders) {
    if (l.simulated == 0) continue;
    PlanBar& bar = chart.bars.emplace_back();
    bar.name = describe(l.strategy);
    for (const Nanos part :
         {l.parts.compute, l.parts.communication, l.parts.transfer, l.parts.bubble, l.parts.optimizer})
      bar.parts.push_back(static_cast<double>(part.value));
  }
  if (!answers.front) return to_svg(chart);
  for (const FrontPoint& p : answers.front->points) {
    const std::string devices = fmt::format("{} {}", p.devices, p.devices == 1 ? "device" : "devices");
    if (chart.front.empty() || chart.front.back().name != devices) chart.front.push_back({devices, {}});
    chart.front.back().points.push_back(
        {p.leader.hbm.value, p.leader.simulated, describe(p.leader.strategy)});
  }
  return to_svg(chart);
}

}  // namespace hyperrun
