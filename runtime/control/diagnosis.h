// The diagnosis finds the cause among several failures. When one device dies, its peers soon fail too, and
// the news of a consequence may arrive before the news of its cause. So the first event opens a moment of
// waiting, after which the most telling one is named, once.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/control/clock.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

// Kinds of failure, the most telling first.
enum class Symptom : std::uint8_t {
  kFailed,       // the device itself gives the reason
  kLost,         // its connection ended
  kHung,         // it is silent, or finishes nothing any more
  kLauncher,     // mpirun ended
  kNeverJoined,  // its process ended before it joined; mpirun's message may tell why
  kStopped,      // a signal stopped it: mpirun was interrupted, or ends the remaining ranks
  kConsequence,  // it says that it has lost a peer, or that its MPI failed
};

struct FailureReport {
  Symptom symptom = Symptom::kFailed;
  std::int32_t rank = -1;      // number of the device; -1: no device
  std::string text;            // the evidence, for kLost, kHung and kNeverJoined
  std::optional<Error> error;  // for the other symptoms
  int signal = 0;              // for kStopped
  bool process = false;        // true: about all devices of the process that hosts `rank`
};

// The symptom of a failure that a device reports: kConsequence if it only felt another device's end.
Symptom symptom_of(const Error& failure);

class Diagnosis {
 public:
  void add(FailureReport report);
  bool any() const { return !all_.empty(); }
  const FailureReport& root() const;  // the most telling report; among equals the first
  std::vector<FailureReport> reports_of(Symptom symptom) const;  // in the order of arrival
  // Time to wait for something more telling.
  std::chrono::milliseconds settle() const;

 private:
  std::vector<FailureReport> all_;
};

// The progress of a device.
struct Position {
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  std::int64_t invocation = -1;   // invocation being executed or just finished; -1: none yet
  std::int64_t instruction = -1;  // last instruction finished in it; -1: none yet, kAll: the whole invocation

  auto operator<=>(const Position&) const = default;
};

// The invocation that a device must report next.
struct Work {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  std::int64_t invocation = kNone;
  std::string description;  // the driver's description, or empty
};

// The controller's knowledge of a device.
struct DeviceState {
  tasks::DeviceInfo info;
  Position position;
  std::string place;  // that position as the device describes it
  Work work;          // its work at the moment of the verdict
};

std::string name_of(const DeviceBlock& devices);             // "device 3", "devices 0 to 47"
std::string name_of(const tasks::DeviceInfo& info);          // "device 3 (host a, pid 4711)"
std::string name_of_process(const tasks::DeviceInfo& info);  // "devices 0 to 47 (host a, pid 4711)"
std::string listing(std::span<const std::string> names);     // "a, b and c", "a, b and 7 more"

// The error for people: who, where, how far it came, and who waits for it.
Error explain(const Diagnosis& diagnosis, std::span<const DeviceState> devices);

}  // namespace hyperrun::control
