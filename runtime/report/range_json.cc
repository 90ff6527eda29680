#include "runtime/report/range_json.h"

namespace hyperrun {
namespace {

Json guess_json(const GuessEffect& g) {
  return {{"figure", g.path},
          {"name", g.name},
          {"value", g.value},
          {"low", g.low},
          {"high", g.high},
          {"value_words", g.value_words},
          {"low_words", g.low_words},
          {"high_words", g.high_words},
          {"range_source", g.range_source},
          {"step_at_low_ns", g.at_low.value},
          {"step_at_high_ns", g.at_high.value},
          {"fits_at_low", g.fits_low},
          {"fits_at_high", g.fits_high}};
}

GuessEffect guess_from(const Json& j) {
  return {j.at("figure"),
          j.at("name"),
          j.at("value"),
          j.at("low"),
          j.at("high"),
          j.at("value_words"),
          j.at("low_words"),
          j.at("high_words"),
          j.at("range_source"),
          Nanos(whole(j, "step_at_low_ns")),
          Nanos(whole(j, "step_at_high_ns")),
          j.at("fits_at_low"),
          j.at("fits_at_high")};
}

}  // namespace

Json to_json(const StepRange& range) {
  Json guesses = Json::array();
  for (const GuessEffect& g : range.guesses) guesses.push_back(guess_json(g));
  return {{"machine", range.machine},
          {"figures",
           {{"measured", range.counts.measured},
            {"data_sheet", range.counts.data_sheet},
            {"guessed", range.counts.guessed}}},
          {"step_ns", range.step.value},
          {"fastest_ns", range.fastest.value},
          {"slowest_ns", range.slowest.value},
          {"fits_at_fastest", range.fits_fastest},
          {"fits_at_slowest", range.fits_slowest},
          {"guesses", guesses},
          {"without_range", range.without_range},
          {"not_simulated", range.not_simulated}};
}

StepRange range_from(const Json& json) {
  const Json& counts = json.at("figures");
  StepRange range{.machine = json.at("machine"),
                  .counts = {counts.at("measured"), counts.at("data_sheet"), counts.at("guessed")},
                  .step = Nanos(whole(json, "step_ns")),
                  .fastest = Nanos(whole(json, "fastest_ns")),
                  .slowest = Nanos(whole(json, "slowest_ns")),
                  .fits_fastest = json.at("fits_at_fastest"),
                  .fits_slowest = json.at("fits_at_slowest"),
                  .guesses = {},
                  .without_range = json.at("without_range"),
                  .not_simulated = json.at("not_simulated")};
  for (const Json& g : json.at("guesses")) range.guesses.push_back(guess_from(g));
  return range;
}

}  // namespace hyperrun
