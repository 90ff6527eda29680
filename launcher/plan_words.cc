#include "launcher/plan_words.h"

#include "runtime/base/format.h"
#include "runtime/report/json.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

std::string share(Nanos part, double step) { return percent_words(static_cast<double>(part.value) / step); }

// A field of a line with commas.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c == '\n' ? ' ' : c);
  return out + "\"";
}

Table ranking(const Search& s) {
  Table table({left("strategy"), right("step"), right("forecast"), right("MFU"), right("HBM"),
               right("compute"), right("exposed comm"), right("transfer"), right("bubble"),
               right("optimizer")});
  for (const Leader& l : s.leaders) {
    if (l.simulated == 0) {
      table.row({words(l.strategy), "refused", time_words(l.forecast.time)});
      continue;
    }
    table.row({words(l.strategy), time_words(l.simulated),
               format("%+.1f %%", 100 * (l.forecast.time / l.simulated - 1)), percent_words(l.mfu),
               to_string(l.hbm), share(l.parts.compute, l.simulated),
               share(l.parts.communication, l.simulated), share(l.parts.transfer, l.simulated),
               share(l.parts.bubble, l.simulated), share(l.parts.optimizer, l.simulated)});
  }
  return table;
}

Json to_json(const Leader& l) {
  Json json{{"strategy", words(l.strategy)}};
  for (const MeshAxis& axis : mesh_of(l.strategy)) json["mesh"][axis.name] = axis.size;
  json["micro_batches"] = l.micro_batches;
  json["forecast_ns"] = l.forecast.time;
  json["bound_ns"] = l.forecast.bound;
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

}  // namespace

std::string percent_words(double share) { return format("%.1f %%", 100 * share); }
std::string time_words(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }

std::string search_words(const Search& s) {
  std::string text = format(
      "%s strategies: %s with layouts that do not divide, %s that do not fit, %s bounded, %s forecast, %zu "
      "simulated\n\n",
      with_separators(s.strategies).c_str(), with_separators(s.do_not_divide).c_str(),
      with_separators(s.do_not_fit).c_str(), with_separators(s.bounded).c_str(),
      with_separators(s.forecast).c_str(), s.leaders.size());
  text += ranking(s).str();
  for (const Leader& l : s.leaders)
    if (l.simulated == 0) text += "refused: " + words(l.strategy) + ": " + l.why_not + "\n";
  return text + "\nno strategy is more than " + percent_words(s.gap()) + " faster than the first\n";
}

std::string why_words(const Search& s, Bytes hbm) {
  const Leader& best = s.leaders.front();
  std::string text, dimension;
  for (const Verdict& v : verdicts(s.alternatives, best.strategy, best.forecast, hbm)) {
    if (v.dimension != dimension) text += "\n" + v.dimension + "\n";
    dimension = v.dimension;
    text += format("  %-12s %s\n", v.value.c_str(), v.sentence.c_str());
  }
  return text;
}

std::string plan_json(const PlanAnswers& answers) {
  const Search& s = answers.search;
  Json json{{"space", answers.space.name},
            {"strategies", s.strategies},
            {"do_not_divide", s.do_not_divide},
            {"do_not_fit", s.do_not_fit},
            {"bounded", s.bounded},
            {"forecast", s.forecast},
            {"gap", s.gap()}};
  for (const Leader& l : s.leaders) json["leaders"].push_back(to_json(l));
  const Leader& best = s.leaders.front();
  for (const Verdict& v : verdicts(s.alternatives, best.strategy, best.forecast, answers.hbm))
    json["why"].push_back(
        {{"dimension", v.dimension}, {"value", v.value}, {"chosen", v.chosen}, {"sentence", v.sentence}});
  return dump_indented(json);
}

std::string plan_csv(const Search& s) {
  std::string text =
      "strategy,step_ns,forecast_ns,bound_ns,mfu,hbm_bytes,pool_bytes,compute_ns,communication_ns,transfer_"
      "ns,bubble_ns,optimizer_ns,refused\n";
  for (const Leader& l : s.leaders)
    text += format(
        "%s,%.0f,%.0f,%.0f,%.4f,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%s\n", quoted(words(l.strategy)).c_str(),
        l.simulated, l.forecast.time, l.forecast.bound, l.mfu, static_cast<long long>(l.hbm.value),
        static_cast<long long>(l.pool.value), static_cast<long long>(l.parts.compute.value),
        static_cast<long long>(l.parts.communication.value), static_cast<long long>(l.parts.transfer.value),
        static_cast<long long>(l.parts.bubble.value), static_cast<long long>(l.parts.optimizer.value),
        quoted(l.why_not).c_str());
  return text;
}

}  // namespace hyperrun
