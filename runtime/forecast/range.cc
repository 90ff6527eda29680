#include "runtime/forecast/range.h"

#include <fmt/core.h>

#include "runtime/report/status_line.h"
#include "runtime/spec/profile_figures.h"

namespace hyperrun {

namespace {

std::optional<StepRange> vary_guesses(const SupernodeSpec& spec, const TimeOn& time, GuessOptions options) {
  const std::vector<FigurePath> figures = figures_of(machine_of(spec));
  if (figures.empty()) return std::nullopt;
  StatusLine status;
  options.progress = [&](std::int64_t done, std::int64_t all) {
    status.tell(fmt::format("{} of {} guesses of the profile varied", done, all));
  };
  return time_range(spec, figures, time, options);
}

}  // namespace

std::optional<StepRange> range_of(const SimArguments& arguments, const SupernodeSpec& spec,
                                  const TimeOn& time) {
  return arguments.no_range ? std::nullopt : vary_guesses(spec, time, {});
}

std::optional<StepRange> range_of(const SimArguments& arguments, const SupernodeSpec& spec, const Plan& plan,
                                  const std::string& program, const SimOptions& sim) {
  if (arguments.no_range) return std::nullopt;
  const ProgramTime time(plan, program, spec, sim);
  return vary_guesses(spec, time, {.use = memory_use(plan), .most = time.guesses_in_time(), .progress = {}});
}

}  // namespace hyperrun
