#include "runtime/report/reinforcement.h"

#include <fmt/core.h>

#include "runtime/report/programs_json.h"
#include "runtime/report/range_json.h"

namespace hyperrun {
namespace {

constexpr const char* kKind = "reinforcement";

EvaluationMetrics evaluation_of(const Json& json) {
  EvaluationMetrics m;
  m.step = whole(json, "step");
  m.reward = get_number(json, "held_back_reward").value_or(0);
  m.correct = get_number(json, "held_back_correct").value_or(0);
  m.completions = whole(json, "completions");
  m.time = Nanos(whole(json, "time_ns"));
  return m;
}

ReinforcementReport report_of(const Json& json) {
  ReinforcementReport r;
  read_into(r, json);
  r.generated_tokens = whole(json, "generated_tokens");
  r.decode_passes = whole(json, "decode_passes");
  r.filled_slots = json.at("filled_slots");
  r.learned_completions = whole(json, "learned_completions");
  r.learned_tokens = whole(json, "learned_tokens");
  for (const Json& e : json.at("evaluations")) r.evaluations.push_back(evaluation_of(e));
  if (json.contains("range")) r.range = range_from(json.at("range"));
  return r;
}

Json json_of(const EvaluationMetrics& m) {
  Json json;
  json["step"] = m.step;
  put_number(json, "held_back_reward", m.reward);
  put_number(json, "held_back_correct", m.correct);
  json["completions"] = m.completions;
  json["time_ns"] = m.time.value;
  return json;
}

}  // namespace

std::string to_json_line(const ReinforcementMetrics& m) {
  Json json;
  json["step"] = m.step;
  put_number(json, "reward", m.reward);
  put_number(json, "correct", m.correct);
  put_number(json, "length", m.length);
  json["staleness"] = m.staleness;
  put_number(json, "loss", m.loss);
  put_number(json, "kl", m.kl);
  put_number(json, "clipped", m.clipped);
  put_number(json, "grad_norm", m.grad_norm);
  put_number(json, "lr", m.lr);
  json["step_seconds"] = seconds(m.step_time);
  json["time_ns"] = m.time.value;
  return json.dump();
}

std::string to_json_line(const EvaluationMetrics& metrics) { return json_of(metrics).dump(); }

std::string to_json(const ReinforcementReport& r) {
  Json json = json_of(r, kKind);
  json["generated_tokens"] = r.generated_tokens;
  json["decode_passes"] = r.decode_passes;
  json["filled_slots"] = r.filled_slots;
  json["learned_completions"] = r.learned_completions;
  json["learned_tokens"] = r.learned_tokens;
  json["completions_per_second"] = r.per_second(r.learned_completions);
  json["tokens_per_second"] = r.per_second(r.learned_tokens);
  json["evaluations"] = Json::array();
  for (const EvaluationMetrics& e : r.evaluations) json["evaluations"].push_back(json_of(e));
  if (r.range) json["range"] = to_json(*r.range);
  return dump_indented(json);
}

std::optional<ReinforcementReport> read_reinforcement_report(const std::filesystem::path& path) {
  return read_report_of(kKind, path, report_of);
}

std::string to_text(const ReinforcementReport& r) {
  std::string text = fmt::format(
      "{} steps in {:.1f} s, {} tokens generated; a device is in a program {:.1f} % of the time\n", r.steps,
      r.seconds, r.generated_tokens, 100 * r.utilisation);
  text += fmt::format(
      "learned from {:.1f} completions ({:.1f} tokens) a second; {:.1f} % of slots filled in {} passes\n",
      r.per_second(r.learned_completions), r.per_second(r.learned_tokens), 100 * r.filled_slots,
      r.decode_passes);
  text += describe_use(r);
  if (!r.evaluations.empty()) {
    const EvaluationMetrics &first = r.evaluations.front(), &last = r.evaluations.back();
    text += fmt::format(
        "reward on tasks held back: {:.3f} after {} steps, {:.3f} after {}; {:.1f} % and {:.1f} % correct\n",
        first.reward, first.step, last.reward, last.step, 100 * first.correct, 100 * last.correct);
  }
  return text;
}

}  // namespace hyperrun
