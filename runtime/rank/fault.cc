#include "runtime/rank/fault.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <thread>

namespace hyperrun {
namespace {

// Names of the scalars of an invocation. A kind travels as its index.
constexpr const char* kFault = "fault";
constexpr const char* kDevice = "fault_device";
constexpr const char* kSeconds = "fault_seconds";
constexpr const char* kAt = "fault_at";
constexpr std::string_view kKinds[] = {kKillFault, kStopFault,     kSlowFault,
                                       kCutFault,  kFullDiskFault, kFlipFault};

std::int64_t index_of_kind(std::string_view kind) {
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    if (kKinds[i] == kind) return static_cast<std::int64_t>(i);
  return -1;
}

}  // namespace

void set_fault(tasks::Invocation& invocation, const FaultSpec& fault) {
  invocation.scalars[kFault] = index_of_kind(fault.kind);
  invocation.scalars[kDevice] = std::int64_t{fault.device};
  invocation.scalars[kSeconds] = fault.seconds;
  invocation.scalars[kAt] = fault.at;
}

std::optional<FaultSpec> fault_of(const tasks::Invocation& invocation, std::int32_t device) {
  const auto& scalars = invocation.scalars;
  const auto kind = scalars.find(kFault);
  if (kind == scalars.end() || std::get<std::int64_t>(scalars.at(kDevice)) != device) return std::nullopt;
  FaultSpec fault;
  fault.kind = kKinds[static_cast<std::size_t>(std::get<std::int64_t>(kind->second))];
  fault.device = device;
  fault.seconds = std::get<double>(scalars.at(kSeconds));
  fault.at = std::get<std::int64_t>(scalars.at(kAt));
  return fault;
}

bool brings(const tasks::Invocation& invocation, std::string_view kind) {
  const auto brought = invocation.scalars.find(kFault);
  return brought != invocation.scalars.end() &&
         std::get<std::int64_t>(brought->second) == index_of_kind(kind);
}

std::string to_text(const FaultSpec& fault, int process) {
  std::string text = fmt::format("{}:{}", fault.kind, process);
  if (fault.at > 0) text += fmt::format(":{}", fault.at);
  return text;
}

void commit(const FaultSpec& fault, const std::function<void()>& cut) {
  if (fault.at > 0) {
    FaultSpec now = fault;
    now.at = 0;
    const std::chrono::system_clock::time_point at{std::chrono::nanoseconds(fault.at)};
    std::thread([now, cut, at] {
      std::this_thread::sleep_until(at);
      commit(now, cut);
    }).detach();
    return;
  }
  if (fault.kind == kKillFault) std::raise(SIGKILL);
  if (fault.kind == kStopFault) std::raise(SIGSTOP);
  if (fault.kind == kSlowFault) std::this_thread::sleep_for(std::chrono::duration<double>(fault.seconds));
  if (fault.kind == kCutFault) cut();
}

void commit_at_start(const std::string& text, int process, const std::function<void()>& cut) {
  const std::size_t kind = text.find(':');
  if (kind == std::string::npos) return;
  const std::size_t time = std::min(text.find(':', kind + 1), text.size());
  if (text.substr(kind + 1, time - kind - 1) != std::to_string(process)) return;
  FaultSpec fault;
  fault.kind = text.substr(0, kind);
  if (time < text.size()) fault.at = std::stoll(text.substr(time + 1));
  commit(fault, cut);
}

}  // namespace hyperrun
