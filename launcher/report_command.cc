#include <cstdio>
#include <filesystem>

#include "launcher/commands.h"
#include "runtime/report/report.h"
#include "runtime/report/run_directory.h"

namespace hyperrun {

int print_report(const std::string& run_directory) {
  std::printf("%s", to_text(read_report(std::filesystem::path(run_directory) / kReportFile)).c_str());
  return 0;
}

}  // namespace hyperrun
