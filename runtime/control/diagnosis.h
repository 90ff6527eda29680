// Which of several failures is the cause. When one device dies, its peers soon fail too, and the news
// of a consequence may arrive before the news of its cause; so the first event opens a moment of
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

// Most telling first.
enum class Symptom : std::uint8_t {
  kFailed,       // the device itself says why
  kLost,         // its connection ended
  kHung,         // silent, or it finishes nothing any more
  kLauncher,     // mpirun ended
  kNeverJoined,  // its process ended before it joined; what mpirun says of that may tell why
  kStopped,      // a signal stopped it: mpirun was interrupted, or ends those that are left
  kConsequence,  // it says that it has lost a peer, or its MPI failed
};

struct Symptoms {
  Symptom symptom = Symptom::kFailed;
  std::int32_t rank = -1;      // -1: of no device
  std::string text;            // of kLost, kHung and kNeverJoined: how it showed
  std::optional<Error> error;  // of the others
  int signal = 0;              // of kStopped
};

// What a device says when it fails by itself, or kConsequence when it only felt somebody else's end.
Symptom symptom_of(const Error& failure);

class Diagnosis {
 public:
  void add(Symptoms symptoms);
  bool any() const { return !all_.empty(); }
  const Symptoms& root() const;                                 // most telling; of equals the first
  std::vector<std::int32_t> ranks_with(Symptom symptom) const;  // in the order of arrival
  // How long to wait for something more telling than what is known.
  std::chrono::milliseconds settle() const;

 private:
  std::vector<Symptoms> all_;
};

// How far a device came.
struct Position {
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  std::int64_t invocation = -1;   // being executed or just finished, -1: none yet
  std::int64_t instruction = -1;  // the last finished in it, -1: none yet, kAll: the whole invocation

  auto operator<=>(const Position&) const = default;
};

// What a device is to report next.
struct Work {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  std::int64_t invocation = kNone;
  std::string description;  // in the driver's words, or empty
};

// What the controller knows of a device.
struct DeviceState {
  DeviceInfo info;
  Position position;
  std::string place;  // that position in the device's own words
  Work work;          // as of the moment of the verdict
};

std::string name_of(const DeviceInfo& info);              // "device 3 (host a, pid 4711)"
std::string listing(std::span<const std::string> names);  // "a, b and c", "a, b and 7 more"

// The error that tells people: who, where, how far it came, and who waits for it.
Error explain(const Diagnosis& diagnosis, std::span<const DeviceState> devices);

}  // namespace hyperrun::control
