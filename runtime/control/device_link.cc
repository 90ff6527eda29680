#include "runtime/control/device_link.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>  // before Asio: Boost 1.74 under C++20 needs it

#include "runtime/control/clock.h"
#include "runtime/control/codec.h"
#include "runtime/control/diagnosis.h"
#include "runtime/control/handshake.h"
#include "runtime/process/stale_segments.h"
#include "runtime/process/watchdog.h"

namespace hyperrun::control {
namespace {

constexpr std::chrono::seconds kFlush{1};  // limit of waiting for a last message to be sent
// Grace of a device whose controller is gone. A launcher that ends with the controller kills its ranks a
// second later, and they must have cleaned up by then.
constexpr std::chrono::milliseconds kOrphansGrace{300};
constexpr std::chrono::seconds kVerdict{2};  // time that the controller has to end a device that was stopped

}  // namespace

class DeviceLink::Impl {
 public:
  explicit Impl(DeviceLinkOptions options)
      : options_(std::move(options)), heartbeat_(io_), verdict_(io_), signals_(io_) {
    Joined joined = join_run(
        io_, options_, [this](pb::Message&& m) { on_message(std::move(m)); },
        [this](const std::string& reason) { on_end(reason); });
    connection_ = std::move(joined.connection);
    devices_of_run_ = joined.devices;
    devices_ = block_of(options_.rank, options_.world_size, devices_of_run_);
    for (int d = 0; d < devices_.count; ++d) slots_.emplace_back();
    period_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(std::max(0.01, 0.25 * joined.heartbeat_seconds)));
    connection_->set_peer_timeout(std::max(5.0, 5 * joined.heartbeat_seconds));
    io_.restart();
    work_.emplace(io_.get_executor());
    heard_ = Clock::now();
    heartbeat_.expires_at(heard_);
    beat();
    if (options_.handle_signals) await_signals();
    thread_ = std::thread([this] { io_.run(); });
  }

  ~Impl() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  int devices_of_run() const { return devices_of_run_; }
  DeviceBlock devices() const { return devices_; }
  DeviceStatus& status(int device) { return slot(device).status; }

  tasks::Command next(int device) {
    tell_ready();
    Slot& mine = slot(device);
    std::unique_lock lock(mutex_);
    mine.changed.wait(lock, [&] { return abort_ || !mine.commands.empty(); });
    return take(mine);
  }

  std::optional<tasks::Command> next_within(int device, std::chrono::nanoseconds limit) {
    tell_ready();
    Slot& mine = slot(device);
    std::unique_lock lock(mutex_);
    if (!mine.changed.wait_for(lock, limit, [&] { return abort_ || !mine.commands.empty(); })) return {};
    return take(mine);
  }

  void set_wake(std::function<void(int device)> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }

  void report(int device, tasks::InvocationDone done) {
    const pb::Message message = encode(std::move(done), device);
    const std::lock_guard lock(mutex_);
    append_frame(outbox_, message, options_.max_frame);
    if (outbox_scheduled_) return;
    outbox_scheduled_ = true;
    asio::post(io_, [this] { send_outbox(); });
  }

  void fail(int device, const Error& error) {
    if (aborted()) return;
    flush([this, failure = encode(error, device)] {
      tell_position();
      connection_->send(failure);
    });
  }

  void close() {
    flush([this] {
      closing_ = true;
      heartbeat_.cancel();
      pb::Message m;
      m.mutable_goodbye();
      connection_->send(m);
      connection_->finish();
    });
  }

  void cut() {
    asio::post(io_, [this] {
      connection_->close();
      on_end("it was cut");
    });
  }

  bool aborted() const {
    const std::lock_guard lock(mutex_);
    return abort_.has_value();
  }

 private:
  // A device's share of the link.
  struct Slot {
    DeviceStatus status;
    std::condition_variable changed;
    std::deque<tasks::Command> commands;
  };

  Slot& slot(int device) { return slots_[static_cast<std::size_t>(device - devices_.first)]; }

  // The lock must be held.
  tasks::Command take(Slot& mine) {
    if (abort_) throw Error(*abort_);
    tasks::Command command = std::move(mine.commands.front());
    mine.commands.pop_front();
    return command;
  }

  void tell_ready() {
    if (told_ready_) return;
    told_ready_ = true;
    asio::post(io_, [this] {
      pb::Message m;
      m.mutable_ready();
      connection_->send(m);
    });
  }

  // Runs `send` on the link's thread and waits until the message is written.
  template <class Send>
  void flush(Send send) {
    // The promise is shared: the wait may be given up before the callback comes.
    const auto written = std::make_shared<std::promise<void>>();
    auto done = written->get_future();
    asio::post(io_, [this, written, send = std::move(send)] {
      send_outbox();
      send();
      connection_->when_written([written] { written->set_value(); });
    });
    done.wait_for(kFlush);
  }

  void send_outbox() {
    {
      const std::lock_guard lock(mutex_);
      sending_.swap(outbox_);
      outbox_scheduled_ = false;
    }
    if (!sending_.empty()) connection_->send_frame(sending_);
    sending_.clear();
  }

  void tell_position() {
    pb::Message m;
    fill(*m.mutable_heartbeat());
    if (connection_) connection_->send(m);
  }

  void beat() {
    const Clock::time_point now = Clock::now();
    // This process itself was stopped: the controller's messages since then are not read yet.
    if (const Clock::duration late = now - heartbeat_.expiry(); late > period_) heard_ += late;
    if (!closing_ && now - heard_ > options_.silence)
      return abort(Error(Code::kControl, "the controller has been silent for " + to_text(options_.silence))
                       .at(name_of(devices_))
                       .fix("see whether its process was stopped, or its host is gone"));
    tell_position();
    heartbeat_.expires_after(period_);
    heartbeat_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) beat();
    });
  }

  // mpirun stops its ranks by a signal when it is interrupted, and also when it has lost a rank. The
  // controller finds out which, and ends the device. If the first rank stopped ended by itself, mpirun would
  // kill the others at once, before they could say that they were stopped as well.
  void await_signals() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) signals_.add(signal);
    signals_.async_wait([this](const boost::system::error_code& cancelled, int signal) {
      if (cancelled) return;
      const Error why(Code::kControl, fmt::format("stopped by signal {} ({})", signal, strsignal(signal)));
      pb::Message m = encode(why, -1);
      m.mutable_failure()->set_signal(signal);
      connection_->send(m);
      verdict_.expires_after(kVerdict);
      verdict_.async_wait([this, why](const boost::system::error_code& none) {
        if (!none) abort(why);
      });
    });
  }

  void fill(pb::Heartbeat& heartbeat) const {
    for (int d = 0; d < devices_.count; ++d) {
      const DeviceStatus& status = slots_[static_cast<std::size_t>(d)].status;
      pb::Position& position = *heartbeat.add_positions();
      position.set_invocation(status.invocation.load(std::memory_order_relaxed));
      position.set_last_instruction(status.last_instruction.load(std::memory_order_relaxed));
      if (options_.place) position.set_place(options_.place(devices_.first + d));
    }
  }

  void on_message(pb::Message&& message) {
    heard_ = Clock::now();
    switch (message.body_case()) {
      case pb::Message::kLoadProgram:
        return push(devices_.first, decode(std::move(*message.mutable_load_program())));
      case pb::Message::kInvocation: return on_invocation(message.invocation());
      case pb::Message::kShutdown:
        for (int d = devices_.first; d < devices_.end(); ++d) push(d, tasks::Shutdown{});
        return;
      case pb::Message::kAbort:
        return abort(Error(code_from_name(message.abort().code()), message.abort().reason()));
      case pb::Message::kKillPid: return kill_neighbour(message.kill_pid().pid());
      case pb::Message::kWhere: return tell_position();
      case pb::Message::kAlive: return;
      default:
        return abort(Error(Code::kControl, "the controller sent a message that controllers do not send"));
    }
  }

  void on_invocation(const pb::Invocation& message) {
    const tasks::Invocation invocation = decode(message);
    if (message.devices().empty())
      for (int d = devices_.first; d < devices_.end(); ++d) push(d, invocation);
    for (const int d : message.devices())
      if (devices_.contains(d)) push(d, invocation);
  }

  void push(int device, tasks::Command command) {
    const std::lock_guard lock(mutex_);
    slot(device).commands.push_back(std::move(command));
    slot(device).changed.notify_one();
    if (wake_) wake_(device);
  }

  static void kill_neighbour(int pid) {
    if (pid > 1 && pid != getpid()) kill(pid, SIGKILL);
  }

  void on_end(const std::string& reason) {
    if (closing_) return;
    options_.grace = std::min(options_.grace, kOrphansGrace);
    abort(Error(Code::kControl, "the controller is gone (" + reason + ")").at(name_of(devices_)));
  }

  void abort(const Error& why) {
    {
      const std::lock_guard lock(mutex_);
      if (abort_) return;
      abort_ = why;
      for (Slot& s : slots_) s.changed.notify_all();
    }
    auto terminate = options_.terminate;
    if (!terminate) {
      terminate = [](int status) {
        process::remove_segments_of_own_job();
        _exit(status);
      };
    }
    process::end_process_after(options_.grace, static_cast<int>(exit_code(why.code())), std::move(terminate));
    if (options_.on_abort) options_.on_abort(why);
  }

  DeviceLinkOptions options_;
  asio::io_context io_;
  asio::steady_timer heartbeat_, verdict_;
  asio::signal_set signals_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::shared_ptr<Connection> connection_;
  std::chrono::nanoseconds period_{};
  int devices_of_run_ = 0;
  DeviceBlock devices_;
  std::atomic<bool> told_ready_{false};
  bool closing_ = false;     // used on the link's thread
  Clock::time_point heard_;  // likewise: time of the controller's last message
  std::string sending_;      // likewise
  std::thread thread_;

  mutable std::mutex mutex_;
  std::deque<Slot> slots_;  // by device of this process; the deque itself is fixed from the start
  std::function<void(int device)> wake_;
  std::optional<Error> abort_;
  std::string outbox_;
  bool outbox_scheduled_ = false;
};

DeviceLink::DeviceLink(DeviceLinkOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
DeviceLink::~DeviceLink() = default;
int DeviceLink::devices_of_run() const { return impl_->devices_of_run(); }
DeviceBlock DeviceLink::devices() const { return impl_->devices(); }
DeviceStatus& DeviceLink::status(int device) { return impl_->status(device); }
tasks::Command DeviceLink::next(int device) { return impl_->next(device); }
std::optional<tasks::Command> DeviceLink::next_within(int device, std::chrono::nanoseconds limit) {
  return impl_->next_within(device, limit);
}
void DeviceLink::set_wake(std::function<void(int device)> wake) { impl_->set_wake(std::move(wake)); }
void DeviceLink::report(int device, tasks::InvocationDone done) { impl_->report(device, std::move(done)); }
void DeviceLink::fail(int device, const Error& error) { impl_->fail(device, error); }
void DeviceLink::close() { impl_->close(); }
void DeviceLink::cut() { impl_->cut(); }
bool DeviceLink::aborted() const { return impl_->aborted(); }

}  // namespace hyperrun::control
