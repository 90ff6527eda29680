#include "runtime/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "runtime/base/flags.h"

namespace hyperrun {

void init_log(std::string_view who) {
  auto logger = std::make_shared<spdlog::logger>(std::string(who),
                                                 std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("[%H:%M:%S.%e] [%n] [%^%l%$] %v");
  logger->set_level(spdlog::level::from_str(flags().log_level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace hyperrun
