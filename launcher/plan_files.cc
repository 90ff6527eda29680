// The planner's answers for machines: JSON, lines with commas, a picture.
#include <algorithm>

#include "launcher/plan_words.h"
#include "runtime/base/format.h"
#include "runtime/plan/why.h"
#include "runtime/report/json.h"
#include "runtime/report/plan_chart.h"

namespace hyperrun {
namespace {

Json simulated_json(const Leader& l) {
  Json json{{"micro_batches", l.micro_batches}};
  if (l.simulated == 0) {
    json["refused"] = l.why_not;
    return json;
  }
  json["step_ns"] = l.simulated;
  json["mfu"] = l.mfu;
  json["hbm_bytes"] = l.hbm.value;
  json["pool_bytes"] = l.pool.value;
  json["parts_ns"] = {{"compute", l.parts.compute.value},
                      {"communication", l.parts.communication.value},
                      {"transfer", l.parts.transfer.value},
                      {"bubble", l.parts.bubble.value},
                      {"optimizer", l.parts.optimizer.value}};
  return json;
}

// What is known of a strategy.
Json to_json(const Leader& l) {
  Json json = simulated_json(l);
  json["strategy"] = words(l.strategy);
  for (const MeshAxis& axis : mesh_of(l.strategy)) json["mesh"][axis.name] = axis.size;
  if (l.forecast.time > 0) json["forecast_ns"] = l.forecast.time;
  if (l.forecast.bound > 0) json["bound_ns"] = l.forecast.bound;
  return json;
}

Json to_json(const GroupsLie& lie) { return {{"levels", lie.levels}, {"side_by_side", lie.side_by_side}}; }

Json to_json(const Fusion& fusion) {
  Json json{{"axes", Json::array()}, {"groups", Json::array()}};
  for (const AxisLies& a : fusion.axes)
    json["axes"].push_back(
        {{"axis", a.axis}, {"size", a.size}, {"stride", a.stride}, {"lies", to_json(a.lies)}});
  for (const FusedAxes& g : fusion.groups) {
    Json group{{"axes", g.axes}, {"devices", g.devices}, {"lies", to_json(g.lies)}};
    for (const FusedUse& u : g.uses)
      group["uses"].push_back({{"collective", u.collective},
                               {"moved", name(u.moved)},
                               {"pass", pass_words(u.pass)},
                               {"count", u.count},
                               {"bytes", u.bytes},
                               {"largest", u.largest}});
    json["groups"].push_back(group);
  }
  return json;
}

// A program that reads `gap` alone must not take for a certificate what is none.
Json certificate_json(double gap) {
  const bool is_one = says_something(gap);
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
    json["devices"].push_back({{"devices", c.devices}, {"fits", c.fits}, {"needs_bytes", c.needs.value}});
  return json;
}

Json to_json(const BestOf& other) {
  Json json{{"space", other.space}};
  if (other.leader)
    json.update(to_json(*other.leader));
  else
    json["refused"] = why_none(other);
  return json;
}

Json to_json(const WhatIf& w) {
  return {{"figure", w.figure},      {"factor", w.factor}, {"present", to_json(w.present)},
          {"best", to_json(w.best)}, {"other", w.other()}, {"gain", w.gain()},
          {"searched", w.searched}};
}

// A field of a line with commas.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c == '\n' ? ' ' : c);
  return out + "\"";
}

// Empty where it is no certificate.
std::string gap_field(double gap) { return says_something(gap) ? format("%.4f", gap) : ""; }

constexpr const char* kLeaderTitles =
    "strategy,step_ns,forecast_ns,bound_ns,mfu,hbm_bytes,pool_bytes,compute_ns,communication_ns,transfer_ns,"
    "bubble_ns,optimizer_ns,refused";

std::string csv_of(const Leader& l) {
  const auto n = [](auto quantity) { return std::to_string(quantity.value); };
  const auto known = [](double nanos) { return nanos > 0 ? format("%.0f", nanos) : ""; };
  return quoted(words(l.strategy)) + "," + known(l.simulated) + "," + known(l.forecast.time) + "," +
         known(l.forecast.bound) + format(",%.4f,", l.mfu) + n(l.hbm) + "," + n(l.pool) + "," +
         n(l.parts.compute) + "," + n(l.parts.communication) + "," + n(l.parts.transfer) + "," +
         n(l.parts.bubble) + "," + n(l.parts.optimizer) + "," + quoted(l.why_not);
}

// Empty fields but the last.
std::string csv_of_none(const std::string& why) {
  return std::string(static_cast<std::size_t>(std::ranges::count(std::string_view(kLeaderTitles), ',')),
                     ',') +
         quoted(why);
}

std::string csv_of(const Search& s) {
  std::string text = "strategies,do_not_divide,do_not_fit,bounded,forecast,gap,certificate\n";
  for (const std::int64_t n : {s.strategies, s.do_not_divide, s.do_not_fit, s.bounded, s.forecast})
    text += std::to_string(n) + ",";
  return text + gap_field(s.gap()) + "," + quoted(certificate_words(s)) + "\n";
}

}  // namespace

std::string plan_json(const PlanAnswers& answers) {
  const Search& s = answers.search;
  Json json{
      {"space", answers.space.name},        {"strategies", s.strategies}, {"do_not_divide", s.do_not_divide},
      {"do_not_fit", s.do_not_fit},         {"bounded", s.bounded},       {"forecast", s.forecast},
      {"certificate", certificate_words(s)}};
  json.update(certificate_json(s.gap()));
  if (answers.own) {
    json["own"] = simulated_json(answers.own->leader);
    json["own"]["in_space"] = answers.own->in_space;
  }
  for (const Leader& l : s.leaders) json["leaders"].push_back(to_json(l));
  for (const Verdict& v : verdicts(s, answers.job.supernode.hbm))
    json["why"].push_back({{"key", v.key},
                           {"dimension", v.dimension},
                           {"value", v.value},
                           {"chosen", v.chosen},
                           {"sentence", v.sentence}});
  json["fusion"] = to_json(answers.fusion);
  if (answers.front) json["front"] = to_json(*answers.front);
  for (const BestOf& other : answers.others) json["comparison"].push_back(to_json(other));
  if (answers.what_ifs)
    for (const WhatIf& w : *answers.what_ifs) json["what_ifs"].push_back(to_json(w));
  if (answers.proof) json["proof"] = to_json(*answers.proof);
  return dump_indented(json);
}

std::string plan_csv(const PlanAnswers& answers) {
  std::string text = std::string(kLeaderTitles) + "\n";
  for (const Leader& l : answers.search.leaders) text += csv_of(l) + "\n";
  text += "\n" + csv_of(answers.search);
  if (answers.front) {
    text += "\ndevices,budget_bytes,gap," + std::string(kLeaderTitles) + "\n";
    for (const FrontPoint& p : answers.front->points)
      text += format("%d,%lld,", p.devices, static_cast<long long>(p.budget.value)) + gap_field(p.gap) + "," +
              csv_of(p.leader) + "\n";
  }
  if (!answers.others.empty()) {
    text += "\nspace," + std::string(kLeaderTitles) + "\n";
    for (const BestOf& other : answers.others)
      text += std::string(other.space) + "," +
              (other.leader ? csv_of(*other.leader) : csv_of_none(std::string(why_none(other)))) + "\n";
  }
  if (answers.what_ifs) {
    text += "\nfigure,factor,present_ns,gain," + std::string(kLeaderTitles) + "\n";
    for (const WhatIf& w : *answers.what_ifs)
      text += quoted(w.figure) + format(",%g,%.0f,%.4f,", w.factor, w.present.simulated, w.gain()) +
              csv_of(w.best) + "\n";
  }
  return text;
}

std::string plan_svg(const PlanAnswers& answers) {
  const Search& s = answers.search;
  const SupernodeSpec& spec = answers.job.supernode;
  const std::string name = answers.job.name.empty() ? "plan" : answers.job.name;
  PlanChart chart{
      .title = name + ": the best strategies",
      .subtitle =
          format("%d devices of %s, batch %d; simulated (%s); ", spec.devices, to_string(spec.hbm).c_str(),
                 answers.job.training.batch, machine_of(spec).name.c_str()) +
          (says_something(s.gap()) ? "none of all is faster by more than " : "") + gap_words(s.gap()),
      .parts = {"compute", "exposed communication", "transfer", "bubble", "optimizer"},
      .bound = s.bounds_hold ? s.leaders.front().simulated / (1 + s.gap()) : 0,
      .budget = spec.hbm.value};
  for (const Leader& l : s.leaders) {
    if (l.simulated == 0) continue;
    PlanBar& bar = chart.bars.emplace_back();
    bar.name = words(l.strategy);
    for (const Nanos part :
         {l.parts.compute, l.parts.communication, l.parts.transfer, l.parts.bubble, l.parts.optimizer})
      bar.parts.push_back(static_cast<double>(part.value));
  }
  if (!answers.front) return to_svg(chart);
  for (const FrontPoint& p : answers.front->points) {
    const std::string devices = std::to_string(p.devices) + (p.devices == 1 ? " device" : " devices");
    if (chart.front.empty() || chart.front.back().name != devices) chart.front.push_back({devices, {}});
    chart.front.back().points.push_back({p.leader.hbm.value, p.leader.simulated, words(p.leader.strategy)});
  }
  return to_svg(chart);
}

}  // namespace hyperrun
