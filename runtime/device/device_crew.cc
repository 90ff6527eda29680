#include "runtime/device/device_crew.h"

#include <sched.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/base/device_block.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

namespace context = boost::context;

constexpr std::size_t kStack = std::size_t{512} << 10;  // takes pages as they are touched
constexpr std::chrono::microseconds kLooking{50};       // time of looking in vain before the thread sleeps

// Sanitizers would need to know every stack.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasFibers = false;
#else
constexpr bool kHasFibers = true;
#endif

class FirstError {
 public:
  void note() {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  void rethrow() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

// The devices of one thread.
class DeviceCrew::Fibers : public ThreadSharer {
 public:
  explicit Fibers(DeviceBlock devices) : devices_(devices) {}

  // `worlds` are those of these devices. `body` does not throw.
  void run(std::span<World* const> worlds, const std::function<void(int device)>& body) {
    fibers_.resize(worlds.size());
    for (std::size_t f = 0; f < fibers_.size(); ++f)
      fibers_[f].at = context::fiber(std::allocator_arg, context::protected_fixedsize_stack(kStack),
                                     [&, f](context::fiber&& caller) {
                                       caller_ = std::move(caller);
                                       body(devices_.first + static_cast<int>(f));
                                       return std::move(caller_);
                                     });
    auto moved = std::chrono::steady_clock::now();
    while (std::ranges::any_of(fibers_, [](const Fiber& f) { return bool(f.at); })) {
      const auto now = std::chrono::steady_clock::now();
      if (give_turns()) {
        moved = now;
      } else if (now - moved < kLooking) {
        sched_yield();
      } else {
        sleep(worlds);
      }
    }
  }

  void yield(bool again) override {
    current_->moved = !again;
    caller_ = std::move(caller_).resume();
  }

 private:
  struct Fiber {
    context::fiber at;  // empty once it has ended
    bool moved = true;  // false if it only looked in vain in its last turn
  };

  // Gives a turn to every fiber. Returns true if any has moved on.
  bool give_turns() {
    bool any = false;
    for (Fiber& f : fibers_) {
      if (!f.at) continue;
      current_ = &f;
      f.moved = true;
      f.at = std::move(f.at).resume();
      any = any || f.moved;
    }
    return any;
  }

  // All devices wait, for devices of other threads and processes or for commands. All of these ring the bell.
  void sleep(std::span<World* const> worlds) {
    Bell& bell = worlds.front()->bell();
    const std::uint32_t seen = hear_rings(bell);
    if (!give_turns()) {
      std::int64_t longest = worlds.front()->longest_sleep();
      for (const World* world : worlds.subspan(1)) longest = std::min(longest, world->longest_sleep());
      sleep_on(bell, seen, longest);
    }
    stop_hearing(bell);
  }

  DeviceBlock devices_;
  std::vector<Fiber> fibers_;
  Fiber* current_ = nullptr;
  context::fiber caller_;  // the thread, while a fiber runs
};

DeviceCrew::DeviceCrew(int devices, int threads) : devices_(devices) {
  HR_CHECK(threads > 0 && threads <= devices);
  if (threads == devices || !kHasFibers) return;
  for (int t = 0; t < threads; ++t)
    fibers_.push_back(std::make_unique<Fibers>(block_of(t, threads, devices)));
}

DeviceCrew::~DeviceCrew() = default;

ThreadSharer* DeviceCrew::sharer(int device) const {
  if (fibers_.empty()) return nullptr;
  return fibers_[static_cast<std::size_t>(process_of(device, static_cast<int>(fibers_.size()), devices_))]
      .get();
}

void DeviceCrew::run(std::span<World* const> worlds, const std::function<void(int device)>& body,
                     const std::function<void()>& failed) {
  HR_CHECK(std::ssize(worlds) == devices_);
  FirstError error;
  const auto guarded = [&](int device) {
    try {
      body(device);
    } catch (...) {
      error.note();
      failed();
    }
  };
  const int threads = fibers_.empty() ? devices_ : static_cast<int>(fibers_.size());
  const auto run_thread = [&](int t) {
    if (fibers_.empty()) return guarded(t);
    const DeviceBlock own = block_of(t, threads, devices_);
    fibers_[static_cast<std::size_t>(t)]->run(
        worlds.subspan(static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count)), guarded);
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back([&, t] { run_thread(t); });
    run_thread(0);
  }
  error.rethrow();
}

int threads_of_crew(int devices, int processes) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores / processes, 1, devices);
}

}  // namespace hyperrun
