#include "bench/control/simulated_devices.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "runtime/control/clock.h"
#include "runtime/control/codec.h"
#include "runtime/control/handshake.h"

namespace hyperrun::bench {
namespace {

using control::Clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

class Devices {
 public:
  explicit Devices(const DevicesSpec& spec) : spec_(spec), end_of_work_(io_), heartbeat_(io_) {
    for (std::int32_t r = 0; r < spec.devices; ++r) join(r);
    for (const auto& d : devices_) {
      control::pb::Message ready;
      ready.mutable_ready();
      d->connection->send(ready);
    }
    beat();
  }

  DevicesResult run() {
    io_.restart();
    while (ended_ < spec_.devices) io_.run_one();
    DevicesResult result;
    for (const auto& d : devices_) {
      result.invocations += d->invocations;
      result.waited += d->waited;
      result.busy_seconds += seconds(d->busy);
      result.idle_seconds += seconds(d->idle);
      result.longest_wait_seconds = std::max(result.longest_wait_seconds, seconds(d->longest));
      if (d->busy + d->idle > Clock::duration::zero())
        result.worst_device_idle =
            std::max(result.worst_device_idle, seconds(d->idle) / seconds(d->busy + d->idle));
    }
    return result;
  }

 private:
  struct Device {
    std::int32_t rank = 0;
    std::shared_ptr<control::Connection> connection;
    std::deque<std::int64_t> queue;  // invocations, the first of them at work
    Clock::time_point free;          // end of the last invocation
    bool started = false;
    std::int64_t invocations = 0, waited = 0;
    Clock::duration busy{}, idle{}, longest{};
  };
  using Ending = std::pair<Clock::time_point, Device*>;

  void join(std::int32_t rank) {
    control::DeviceLinkOptions options;
    options.controller = spec_.controller;
    options.secret = spec_.secret;
    options.rank = rank;
    options.world_size = spec_.devices;
    options.version = "bench";
    Device& device = *devices_.emplace_back(std::make_unique<Device>());
    device.rank = rank;
    control::Joined joined = control::join_run(
        io_, options, [this, &device](control::pb::Message&& m) { on_message(device, m); },
        [this](const std::string&) { ++ended_; });
    device.connection = std::move(joined.connection);
  }

  void on_message(Device& device, const control::pb::Message& message) {
    if (message.has_shutdown()) {
      control::pb::Message m;
      m.mutable_goodbye();
      device.connection->send(m);
      device.connection->finish();
    }
    if (message.has_abort()) throw Error(Code::kControl, message.abort().reason());
    if (!message.has_invocation()) return;
    device.queue.push_back(control::decode(message.invocation()).id);
    if (device.queue.size() == 1) begin(device, Clock::now());
  }

  void begin(Device& device, Clock::time_point now) {
    if (!begun_)
      counted_from_ = now + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(spec_.warm_up_seconds));
    begun_ = true;
    if (device.started && device.free >= counted_from_) {
      const Clock::duration wait = now - device.free;
      device.idle += wait;
      device.waited += wait > Clock::duration::zero() ? 1 : 0;
      device.longest = std::max(device.longest, wait);
    }
    device.started = true;
    if (spec_.work_ns == 0) return end(device, now);
    endings_.emplace(now + nanoseconds(spec_.work_ns), &device);
    if (endings_.top().second == &device) wake();
  }

  void end(Device& device, Clock::time_point at) {
    if (at >= counted_from_) {
      ++device.invocations;
      device.busy += nanoseconds(spec_.work_ns);
    }
    tasks::InvocationDone done;
    done.id = device.queue.front();
    device.connection->send(control::encode(std::move(done), device.rank));
    device.queue.pop_front();
    device.free = at;
    // An invocation that is there already begins at once, however late this thread is.
    if (!device.queue.empty()) begin(device, at);
  }

  void wake() {
    end_of_work_.expires_at(endings_.top().first);
    end_of_work_.async_wait([this](const boost::system::error_code& replaced) {
      if (replaced) return;
      const Clock::time_point now = Clock::now();
      while (!endings_.empty() && endings_.top().first <= now) {
        const auto [at, device] = endings_.top();
        endings_.pop();
        end(*device, at);
      }
      if (!endings_.empty()) wake();
    });
  }

  void beat() {
    control::pb::Message m;
    m.mutable_heartbeat()->add_positions()->set_invocation(-1);
    for (const auto& d : devices_) d->connection->send(m);
    heartbeat_.expires_after(milliseconds(500));
    heartbeat_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) beat();
    });
  }

  const DevicesSpec& spec_;
  boost::asio::io_context io_{1};
  boost::asio::steady_timer end_of_work_, heartbeat_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;
  std::int32_t ended_ = 0;
  bool begun_ = false;
  Clock::time_point counted_from_;
};

}  // namespace

DevicesResult run_devices(const DevicesSpec& spec) { return Devices(spec).run(); }

}  // namespace hyperrun::bench
