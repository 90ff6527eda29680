#include "runtime/validate/validation.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/base/median.h"
#include "runtime/base/parallel.h"
#include "runtime/report/table.h"
#include "runtime/validate/run_model.h"

namespace hyperrun {
namespace {

using Runs = std::vector<ValidatedRun>;

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }
std::string signed_percent(double share) { return fmt::format("{:+.1f}%", 100 * share); }

bool has(const PublishedRun& run, Measure of) {
  return (of == Measure::kTime ? run.milliseconds : run.gibibytes) > 0;
}

template <class Chosen>
ErrorSummary summary(const Runs& runs, Measure of, Chosen chosen) {
  std::vector<double> errors;
  ErrorSummary s;
  for (const ValidatedRun& v : runs) {
    if (!chosen(v.run) || !has(v.run, of)) continue;
    const double error = of == Measure::kTime ? v.error() : v.memory_error();
    errors.push_back(std::abs(error));
    s.mean += errors.back(), s.bias += error;
  }
  s.runs = errors.size();
  if (errors.empty()) return s;
  s.mean /= static_cast<double>(s.runs), s.bias /= static_cast<double>(s.runs);
  s.median = median(errors), s.largest = std::ranges::max(errors);
  return s;
}

std::vector<std::string> sets_of(const Runs& runs) {
  std::vector<std::string> names;
  for (const ValidatedRun& v : runs)
    if (std::ranges::find(names, v.run.set) == names.end()) names.push_back(v.run.set);
  return names;
}

const char* use(bool calibrates) { return calibrates ? "calibration" : "judged"; }

// Adds the errors of a set's judged runs, grouped by one property.
void add_dimension(Table& table, const Runs& runs, const std::string& set, const char* what,
                   std::int32_t PublishedRun::*property) {
  std::map<std::int32_t, int> values;
  for (const ValidatedRun& v : runs)
    if (v.run.set == set && !v.run.calibrates) ++values[v.run.*property];
  if (values.size() < 2) return;
  for (const auto& [value, count] : values) {
    const ErrorSummary s = summary(runs, Measure::kTime, [&, wanted = value](const PublishedRun& r) {
      return r.set == set && !r.calibrates && r.*property == wanted;
    });
    table.row(
        {set, what, std::to_string(value), std::to_string(count), percent(s.mean), signed_percent(s.bias)});
  }
}

std::string dimensions_table(const Runs& runs) {
  Table table({left("judged runs"), left("by"), right(""), right("number"), right("mean error"),
               right("mean, signed")});
  for (const std::string& set : sets_of(runs)) {
    add_dimension(table, runs, set, "tp", &PublishedRun::tensor);
    add_dimension(table, runs, set, "dp", &PublishedRun::data);
    add_dimension(table, runs, set, "pp", &PublishedRun::pipeline);
    add_dimension(table, runs, set, "micro_batch", &PublishedRun::micro_batch);
    add_dimension(table, runs, set, "hidden", &PublishedRun::hidden);
  }
  return table.empty() ? "" : "\n" + table.str();
}

std::string runs_table(const Runs& runs) {
  Table table({left("run"), left("use"), right("devices"), right("hidden"), right("layers"),
               right("micro-batch"), right("tp"), right("cp"), right("ep"), right("dp"), right("pp"),
               right("micro-batches"), right("measured ms"), right("simulated ms"), right("error"),
               right("measured GiB"), right("simulated GiB"), right("error")});
  for (const ValidatedRun& v : runs) {
    const PublishedRun& r = v.run;
    table.row({r.place, use(r.calibrates), std::to_string(r.devices), std::to_string(r.hidden),
               std::to_string(r.layers), std::to_string(r.micro_batch), std::to_string(r.tensor),
               std::to_string(r.context), std::to_string(r.expert), std::to_string(r.data),
               std::to_string(r.pipeline), std::to_string(r.micro_batches()),
               r.milliseconds > 0 ? fmt::format("{:.1f}", r.milliseconds) : "",
               fmt::format("{:.1f}", v.simulated), r.milliseconds > 0 ? signed_percent(v.error()) : "",
               r.gibibytes > 0 ? fmt::format("{:.2f}", r.gibibytes) : "",
               fmt::format("{:.2f}", v.simulated_gibibytes),
               r.gibibytes > 0 ? signed_percent(v.memory_error()) : ""});
  }
  return table.str() + "\n";
}

}  // namespace

std::vector<ValidatedRun> simulate_runs(const std::vector<PublishedRun>& runs,
                                        std::span<const Machine* const> machines,
                                        const std::function<void(std::size_t)>& progress) {
  std::vector<ValidatedRun> validated(runs.size());
  std::atomic<std::size_t> done{0};
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return runs[i].work(); });
  parallel_for(runs.size(), [&](std::size_t at) {
    const std::size_t i = order[at];
    try {
      const RunModel model(runs[i], machines[i]->software);
      validated[i] = {runs[i], model.milliseconds(*machines[i]), model.gibibytes()};
    } catch (const Error& e) {
      throw Error(e.code(), e.cause()).at(runs[i].place).legal(e.legal()).fix("leave the run out");
    }
    progress(++done);
  });
  return validated;
}

std::vector<ErrorSummary> summaries(const std::vector<ValidatedRun>& runs, Measure of) {
  std::vector<ErrorSummary> list;
  for (const std::string& set : sets_of(runs))
    for (const bool calibrates : {true, false}) {
      ErrorSummary s = summary(
          runs, of, [&](const PublishedRun& r) { return r.set == set && r.calibrates == calibrates; });
      s.set = set, s.calibrates = calibrates;
      if (s.runs > 0) list.push_back(std::move(s));
    }
  return list;
}

std::string to_text(const std::vector<ValidatedRun>& runs, bool each) {
  const auto table_of = [&](const char* heading, Measure of) {
    Table table({left(heading), left("use"), right("number"), right("mean error"), right("median"),
                 right("largest"), right("mean, signed")});
    for (const ErrorSummary& s : summaries(runs, of))
      table.row({s.set, use(s.calibrates), std::to_string(s.runs), percent(s.mean), percent(s.median),
                 percent(s.largest), signed_percent(s.bias)});
    return table.empty() ? "" : table.str() + "\n";
  };
  return (each ? runs_table(runs) : "") + table_of("runs", Measure::kTime) +
         table_of("peak of memory", Measure::kMemory) + dimensions_table(runs);
}

std::string to_csv(const std::vector<ValidatedRun>& runs) {
  std::string text =
      "place,set,use,devices,hidden,layers,micro_batch,tp,dp,pp,micro_batches,measured_ms,simulated_ms,"
      "cp,ep,measured_gib,simulated_gib\n";
  for (const ValidatedRun& v : runs) {
    const PublishedRun& r = v.run;
    text += r.place + "," + r.set + "," + use(r.calibrates);
    for (const std::int32_t n :
         {r.devices, r.hidden, r.layers, r.micro_batch, r.tensor, r.data, r.pipeline, r.micro_batches()})
      text += fmt::format(",{}", n);
    text += fmt::format(",{:.6f},{:.6f},{},{},{:.4f},{:.4f}\n", r.milliseconds, v.simulated, r.context,
                        r.expert, r.gibibytes, v.simulated_gibibytes);
  }
  return text;
}

std::string to_json(const std::vector<ValidatedRun>& runs, const std::string& profile) {
  nlohmann::ordered_json json{{"profile", profile}, {"sets", nlohmann::json::array()}};
  const auto add = [&](const char* list, Measure of) {
    json[list] = nlohmann::json::array();
    for (const ErrorSummary& s : summaries(runs, of))
      json[list].push_back({{"set", s.set},
                            {"use", use(s.calibrates)},
                            {"runs", s.runs},
                            {"mean_error", s.mean},
                            {"median_error", s.median},
                            {"largest_error", s.largest},
                            {"mean_signed_error", s.bias}});
  };
  add("sets", Measure::kTime);
  add("memory_sets", Measure::kMemory);
  for (const ValidatedRun& v : runs)
    json["runs"].push_back({{"place", v.run.place},
                            {"set", v.run.set},
                            {"use", use(v.run.calibrates)},
                            {"measured_ms", v.run.milliseconds},
                            {"simulated_ms", v.simulated},
                            {"measured_gib", v.run.gibibytes},
                            {"simulated_gib", v.simulated_gibibytes}});
  return json.dump(2) + "\n";
}

}  // namespace hyperrun
