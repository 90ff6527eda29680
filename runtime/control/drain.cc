#include "runtime/control/drain.h"

#include <algorithm>
#include <chrono>

namespace hyperrun::control {
namespace {

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::seconds kStopped{3};  // a stop that may still be undone: ctrl-Z and fg

}  // namespace

void Drain::begin(Clock::duration limit, Verdict verdict) {
  verdict_ = std::move(verdict);
  running_ = Clock::now();
  end_ = running_ + limit;
  tick();
}

void Drain::tick() {
  const Clock::time_point now = Clock::now();
  const int stopped = stopped_launcher_();
  if (stopped == 0) running_ = now;
  if (stopped != 0 && (now - running_ >= kStopped || now >= end_)) return verdict_.launcher_stopped(stopped);
  if (now >= end_) return verdict_.too_long();
  tick_.expires_at(std::min(end_, now + kTick));
  tick_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) tick();
  });
}

}  // namespace hyperrun::control
