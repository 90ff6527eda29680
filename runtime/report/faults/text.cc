#include "runtime/report/faults/text.h"

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/report/table.h"

namespace hyperrun {
namespace {

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string share_of(double seconds, const FaultStudy& study) {
  return seconds == 0 ? "" : percent(seconds / study.spec.horizon);
}

std::string policies_table(const FaultStudy& study) {
  Table t({right("devices"), left("policy"), right("spares"), right("goodput"), right("+-"), right("of all"),
           right("saving"), right("lost"), right("noticing"), right("waiting"), right("starting"),
           right("reading"), right("slower"), right("faults")});
  for (const FaultScale& scale : study.scales) {
    if (&scale != study.scales.data()) t.rule();
    for (const FaultRow& row : scale.rows) {
      const FaultOutcome& m = row.mean;
      t.row({with_separators(scale.run.devices), std::string(row.policy.name),
             row.policy.spares ? with_separators(spares_of(study.spec, scale.run.devices)) : "",
             percent(row.goodput.mean), percent(row.goodput.within), percent(row.of_all),
             share_of(m.saving, study), share_of(m.lost, study), share_of(m.noticing, study),
             share_of(m.waiting, study), share_of(m.starting, study), share_of(m.reading, study),
             share_of(m.slower, study), fmt::format("{:.1f}", m.faults)});
    }
  }
  return t.str("  ");
}

std::string interval_cell(double seconds, const FaultScale& scale) {
  if (std::isinf(seconds) || seconds <= 0) return "";
  const double steps = seconds / scale.run.step;
  const std::string count = steps < 10 ? fmt::format("{:.1f}", steps) : with_separators(std::llround(steps));
  return fmt::format("{} ({})", span_text(seconds), count);
}

// In powers of 1000, as rates of storage are.
std::string bytes_text(double bytes) {
  if (bytes >= 1e12) return fmt::format("{:.2f} TB", bytes / 1e12);
  return bytes >= 1e9 ? fmt::format("{:.2f} GB", bytes / 1e9) : fmt::format("{:.2f} MB", bytes / 1e6);
}

void interval_row(Table& t, const FaultScale& scale, const FaultRow& row) {
  const SaveCost& save = row.policy.copies ? scale.costs.copy : scale.costs.disk;
  const FaultIntervals& i = row.interval;
  t.row({with_separators(scale.run.devices), row.policy.copies ? "copies in memory" : "checkpoints on disk",
         span_text(save.stall), span_text(save.latency), span_text(scale.mtbf),
         fmt::format("{} ({})", span_text(i.best), with_separators(i.best_steps)),
         interval_cell(i.young, scale), interval_cell(i.daly, scale)});
}

// Policies that save alike have the same interval, so each kind of save has one line.
std::string intervals_table(const FaultStudy& study) {
  Table t({right("devices"), left("saves"), right("stall"), right("usable after"), right("a fault each"),
           right("best"), right("Young"), right("Daly")});
  for (const FaultScale& scale : study.scales)
    for (const bool copies : {false, true})
      for (const FaultRow& row : scale.rows)
        if (row.policy.copies == copies) {
          interval_row(t, scale, row);
          break;
        }
  return t.str("  ");
}

std::string assumptions(const FaultStudy& study) {
  const FaultModel& s = study.spec;
  std::string out = "assumed\n";
  out += "  faults come at random and independently, at rates in proportion to the devices\n";
  if (!s.scales.empty())
    out += "  with other numbers of devices a step takes as long, on a batch in proportion\n";
  if (!study.smaller.empty()) out += "  " + study.smaller + "\n";
  out += "  a checkpoint is read once and passed on; repairs do not wait for each other\n";
  if (!s.about.empty()) out += "  " + s.name + ": " + s.about + "\n";
  return out;
}

std::string heading(const FaultStudy& study) {
  const FaultModel& s = study.spec;
  const FaultedRun& run = study.scales.front().run;
  return fmt::format(
      "What faults cost {}, simulated: {} histories of {}, from seed {}.\n"
      "A step takes {}. A checkpoint has {}.\n",
      study.job, s.samples, span_text(s.horizon), s.seed, span_text(run.step), bytes_text(run.state_bytes));
}

}  // namespace

std::string span_text(double seconds) {
  struct Unit {
    double one;
    const char* name;
  };
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  if (std::isinf(seconds)) return "never";
  const Unit unit = seconds < 1             ? Unit{1e-3, "ms"}
                    : seconds < 2 * kMinute ? Unit{1, "s"}
                    : seconds < 2 * kHour   ? Unit{kMinute, "min"}
                    : seconds < 2 * kDay    ? Unit{kHour, "h"}
                                            : Unit{kDay, "days"};
  const double number = seconds / unit.one;
  return number == 0 ? "0 s"
                     : fmt::format("{:.{}f} {}", number, number < 10 && number != std::round(number) ? 1 : 0,
                                   unit.name);
}

std::string to_text(const FaultStudy& study) {
  return heading(study) + "\ngoodput, and where the other time goes\n" + policies_table(study) +
         "\nhow often to save: seconds of training (steps) between two saves\n" + intervals_table(study) +
         "\n" + assumptions(study);
}

}  // namespace hyperrun
