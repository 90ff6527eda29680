#include "runtime/control/diagnosis.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace hyperrun::control {
namespace {

constexpr std::size_t kListed = 8;  // devices named one by one; the rest of thousands is counted

std::string position(const DeviceState& device) {
  const auto [invocation, instruction] = device.position;
  if (invocation < 0) return "before its first invocation";
  const std::string id = std::to_string(invocation);
  if (instruction == Position::kAll) return "finished invocation " + id + ", nothing of the next";
  if (instruction < 0) return "before the first instruction of invocation " + id;
  return fmt::format("finished instruction {} of invocation {}, but not {}", instruction, id,
                     instruction + 1);
}

std::string progress(const DeviceState& device) {
  const std::string& work = device.work.description;
  return position(device) + (work.empty() ? "" : "; it has " + work);
}

bool is_about(const FailureReport& report, const tasks::DeviceInfo& info) {
  return report.rank == info.rank ||
         (report.process && info.process.count > 1 && info.process.contains(report.rank));
}

std::string culprit(const FailureReport& report, std::span<const DeviceState> devices) {
  const tasks::DeviceInfo& info = devices[static_cast<std::size_t>(report.rank)].info;
  return report.process ? name_of_process(info) : name_of(info);
}

// Lists the other devices. Those ahead of the culprit wait for it; those behind may be in a worse state.
std::string others(std::span<const DeviceState> devices, const std::vector<FailureReport>& culprits) {
  std::vector<const DeviceState*> rest;
  const auto is_culprit = [&](const DeviceState& d) {
    return std::ranges::any_of(culprits, [&](const FailureReport& r) { return is_about(r, d.info); });
  };
  for (const DeviceState& d : devices)
    if (d.info.rank >= 0 && !is_culprit(d)) rest.push_back(&d);
  std::string text;
  for (std::size_t i = 0; i < std::min(rest.size(), kListed); ++i) {
    text += fmt::format("\n  device {}: {}", rest[i]->info.rank, progress(*rest[i]));
    if (!rest[i]->place.empty()) text += "; " + rest[i]->place;
  }
  if (rest.size() > kListed) text += fmt::format("\n  and {} more", rest.size() - kListed);
  return text.empty() ? "" : "\n  the others:" + text;
}

std::string not_joined(std::span<const DeviceState> devices) {
  std::vector<std::string> absent;
  for (std::size_t r = 0; r < devices.size(); ++r)
    if (devices[r].info.rank < 0) absent.push_back("device " + std::to_string(r));
  return absent.empty() ? "" : "\n  had not joined: " + listing(absent);
}

Error explain_device(const FailureReport& root, const Diagnosis& diagnosis,
                     std::span<const DeviceState> devices) {
  const DeviceState& device = devices[static_cast<std::size_t>(root.rank)];
  const std::vector<FailureReport> culprits = diagnosis.reports_of(root.symptom);
  const bool hung = root.symptom == Symptom::kHung;
  std::string cause = hung ? "hung: " : "lost: ";
  cause += root.text;
  if (root.symptom != Symptom::kNeverJoined) cause += "; " + progress(device);
  if (!device.place.empty()) cause += "; " + device.place;
  for (const FailureReport& also : culprits)
    if (also.rank != root.rank) cause += "\n  the same holds for " + culprit(also, devices);
  cause += not_joined(devices) + others(devices, culprits);
  return Error(hung ? Code::kDeviceHung : Code::kDeviceLost, cause).at(culprit(root, devices));
}

// Explains the launcher's end. If ranks are missing, they are named.
Error explain_launcher(const FailureReport& root, const Diagnosis& diagnosis,
                       std::span<const DeviceState> devices) {
  const Error& error = root.error.value();
  std::vector<std::string> dead;
  for (const FailureReport& report : diagnosis.reports_of(Symptom::kNeverJoined))
    dead.push_back(culprit(report, devices));
  if (!dead.empty()) return Error(error).at(listing(dead));
  return Error(error.code(), error.cause() + not_joined(devices)).fix(error.remedy());
}

}  // namespace

std::string listing(std::span<const std::string> names) {
  std::string text;
  const std::size_t n = std::min(names.size(), kListed);
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) text += i + 1 == n && n == names.size() ? " and " : ", ";
    text += names[i];
  }
  if (n < names.size()) text += fmt::format(" and {} more", names.size() - n);
  return text;
}

std::string name_of(const DeviceBlock& devices) {
  if (devices.count == 1) return fmt::format("device {}", devices.first);
  return fmt::format("devices {} to {}", devices.first, devices.end() - 1);
}

std::string name_of(const tasks::DeviceInfo& info) {
  return fmt::format("device {} (host {}, pid {})", info.rank, info.host, info.pid);
}

std::string name_of_process(const tasks::DeviceInfo& info) {
  if (info.process.count == 1) return name_of(info);
  return fmt::format("{} (host {}, pid {})", name_of(info.process), info.host, info.pid);
}

Symptom symptom_of(const Error& failure) {
  switch (failure.code()) {
    case Code::kDeviceLost:
    case Code::kDeviceHung:
    case Code::kMpi: return Symptom::kConsequence;
    default: return Symptom::kFailed;
  }
}

void Diagnosis::add(FailureReport report) { all_.push_back(std::move(report)); }

const FailureReport& Diagnosis::root() const {
  HR_CHECK(any());
  return *std::min_element(all_.begin(), all_.end(), [](const FailureReport& a, const FailureReport& b) {
    return a.symptom < b.symptom;
  });
}

std::vector<FailureReport> Diagnosis::reports_of(Symptom symptom) const {
  std::vector<FailureReport> reports;
  std::ranges::copy_if(all_, std::back_inserter(reports),
                       [&](const FailureReport& r) { return r.symptom == symptom; });
  return reports;
}

std::chrono::milliseconds Diagnosis::settle() const {
  using std::chrono::milliseconds;
  switch (root().symptom) {
    case Symptom::kFailed: return milliseconds(0);
    case Symptom::kStopped:
    case Symptom::kConsequence: return milliseconds(300);
    default: return milliseconds(50);
  }
}

Error explain(const Diagnosis& diagnosis, std::span<const DeviceState> devices) {
  const FailureReport& root = diagnosis.root();
  switch (root.symptom) {
    case Symptom::kLost:
    case Symptom::kHung:
    case Symptom::kNeverJoined: return explain_device(root, diagnosis, devices);
    case Symptom::kLauncher: return explain_launcher(root, diagnosis, devices);
    default: break;
  }
  Error error = root.error.value();
  if (root.rank < 0) return error;
  const DeviceState& device = devices[static_cast<std::size_t>(root.rank)];
  std::string where = culprit(root, devices);
  for (const std::string& more : {device.work.description, error.place()})
    if (!more.empty()) where += ", " + more;
  return std::move(error).at(where);
}

}  // namespace hyperrun::control
