#include <cstdio>
#include <filesystem>
#include <optional>

#include "launcher/commands.h"
#include "runtime/report/omni.h"
#include "runtime/report/reinforcement.h"
#include "runtime/report/report.h"
#include "runtime/report/run_directory.h"

namespace hyperrun {

int print_report(const std::string& run_directory) {
  const std::filesystem::path file = std::filesystem::path(run_directory) / kReportFile;
  const std::optional<ReinforcementReport> learned = read_reinforcement_report(file);
  if (const std::optional<OmniReport> omni = read_omni_report(file)) {
    std::printf("%s", to_text(*omni).c_str());
    return 0;
  }
  std::printf("%s", learned ? to_text(*learned).c_str() : to_text(read_report(file)).c_str());
  return 0;
}

}  // namespace hyperrun
