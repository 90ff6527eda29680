// hyperrun validate: compares the simulator with published measurements.
#include <fmt/core.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launcher/commands.h"
#include "runtime/base/error.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/report/file.h"
#include "runtime/report/status_line.h"
#include "runtime/report/table.h"
#include "runtime/report/writable.h"
#include "runtime/spec/profile_reader.h"
#include "runtime/spec/profile_writer.h"
#include "runtime/spec/software_reader.h"
#include "runtime/validate/fit_to_runs.h"
#include "runtime/validate/validation.h"

namespace hyperrun {
namespace {

std::string number(double value) { return fmt::format("{:.4g}", value); }

void print_fit(const FittedMachine& fit) {
  Table table({left("number"), right("expected"), right("give or take"), right("fitted")});
  for (std::size_t i = 0; i < machine_unknowns().size(); ++i) {
    const Unknown& u = machine_unknowns()[i].unknown;
    table.row({u.name, number(u.expected), number(u.deviation), number(fit.fitted.values[i])});
  }
  std::printf("fitted to %d runs, %d evaluations (times in ns)\n%s\n", fit.runs, fit.fitted.evaluations,
              table.str().c_str());
}

Machine calibrated(const Machine& machine, const std::vector<PublishedRun>& runs, const std::string& out) {
  require_writable(out, "--calibrate");
  StatusLine status;
  const FittedMachine fit = fit_to_runs(machine, runs, [&](int evaluation, double error) {
    status.tell(fmt::format("evaluation {}, mean error {:.4g} %", evaluation, 100 * error));
  });
  status.clear();
  print_fit(fit);
  write_file(out, to_textproto(fit.machine));
  return fit.machine;
}

// The machines of runs: their own profiles with their software, or the profile that the command names.
class Machines {
 public:
  Machines(Machine general, std::string file) : general_(std::move(general)), file_(std::move(file)) {}

  const Machine& of(const PublishedRun& run) {
    const auto [it, is_new] = known_.try_emplace({run.profile, run.software}, general_);
    if (!is_new) return it->second;
    try {
      if (!run.profile.empty()) it->second = load_profile(run.profile, file_);
      if (!run.software.empty()) it->second.software = load_software(run.software, file_);
    } catch (Error& e) {
      throw e.at(run.place);
    }
    return it->second;
  }

 private:
  Machine general_;
  std::string file_;  // relative paths are looked up beside it
  std::map<std::pair<std::string, std::string>, Machine> known_;
};

// Runs of no profile of their own, which alone can calibrate one.
std::vector<PublishedRun> of_any_machine(std::vector<PublishedRun> runs) {
  std::erase_if(runs, [](const PublishedRun& r) { return !r.profile.empty(); });
  return runs;
}

}  // namespace

int validate_runs(const ValidateArguments& arguments) {
  const std::vector<PublishedRun> runs =
      arguments.runs.empty() ? shipped_runs() : read_runs(read_whole_file(arguments.runs), arguments.runs);
  Machine machine = load_profile(arguments.profile, "");
  if (!arguments.calibrate.empty()) machine = calibrated(machine, of_any_machine(runs), arguments.calibrate);
  Machines all(machine, arguments.runs);
  std::vector<const Machine*> machines;
  for (const PublishedRun& run : runs) machines.push_back(&all.of(run));
  StatusLine status;
  const auto validated = simulate_runs(runs, machines, [&](std::size_t done) {
    status.tell(fmt::format("simulating {} of {} steps", done, runs.size()));
  });
  status.clear();
  if (arguments.csv)
    std::printf("%s", to_csv(validated).c_str());
  else if (arguments.json)
    std::printf("%s", to_json(validated, machine.name).c_str());
  else
    std::printf("%s: %s\n\n%s", machine.name.c_str(), machine.about.c_str(),
                to_text(validated, arguments.rows).c_str());
  return 0;
}

}  // namespace hyperrun
