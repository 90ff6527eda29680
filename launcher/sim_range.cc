#include "launcher/sim_range.h"

#include "launcher/status_line.h"
#include "runtime/base/format.h"
#include "runtime/spec/profile_figures.h"

namespace hyperrun {

std::optional<StepRange> range_of(const SimArguments& arguments, const SupernodeSpec& spec,
                                  const TimeOn& time) {
  if (arguments.no_range) return std::nullopt;
  const std::vector<FigurePath> figures = figures_of(machine_of(spec));
  if (figures.empty()) return std::nullopt;
  StatusLine status;
  return time_range(spec, figures, time, {.progress = [&](std::int64_t done, std::int64_t all) {
                      status.tell(format("%lld of %lld guesses of the profile varied",
                                         static_cast<long long>(done), static_cast<long long>(all)));
                    }});
}

}  // namespace hyperrun
