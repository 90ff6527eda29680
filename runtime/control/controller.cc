#include "runtime/control/controller.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstring>
#include <map>
#include <span>
#include <utility>  // before Asio: Boost 1.74 under C++20 needs it

#include "runtime/control/codec.h"
#include "runtime/control/connection_acceptor.h"
#include "runtime/control/drain.h"
#include "runtime/control/membership.h"
#include "runtime/control/start_limit.h"
#include "runtime/control/start_up.h"
#include "runtime/control/watch.h"

namespace hyperrun::control {
namespace {

using ErrorCode = boost::system::error_code;
using std::chrono::milliseconds;

constexpr double kLeastStopped = 2;       // seconds for which a rank may be stopped while it starts
constexpr milliseconds kSelfEnd{1500};    // time that an aborted device has to end by itself
constexpr milliseconds kForcedEnd{2200};  // limit after which the controller waits for no device

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

}  // namespace

int Outcome::exit_status() const {
  if (signal != 0) return 128 + signal;
  return error ? static_cast<int>(exit_code(error->code())) : 0;
}

std::string Outcome::reason() const {
  if (signal != 0) return fmt::format("interrupted by signal {} ({})", signal, strsignal(signal));
  return error ? error->what() : "";
}

class Controller::Impl {
 public:
  explicit Impl(ControllerOptions options)
      : options_(std::move(options)),
        ranks_(options_.ranks == 0 ? options_.devices : options_.ranks),
        gate_(io_,
              {options_.devices, ranks_, options_.secret, options_.version, options_.heartbeat_seconds,
               options_.max_frame},
              options_.loopback),
        members_(options_.devices, ranks_),
        watch_(io_, members_, {seconds(options_.heartbeat_seconds), seconds(options_.stall_seconds)},
               {[this](const Error& why) { end(with_stopped_launcher(why)); },
                [this](int signal) { interrupt(signal); },
                [this](std::int32_t device) { return work_of(device); }}),
        groups_(options_.devices),
        dispatcher_(groups_, options_.window),
        signals_(io_),
        phase_timer_(io_),
        address_(process::addresses(gate_.port(), options_.loopback)),
        start_up_(io_, members_, watch_, address_) {}

  const std::string& address() const { return address_; }

  Outcome run(tasks::Driver& driver) {
    HR_CHECK(driver_ == nullptr, "a controller runs once");
    driver_ = &driver;
    gate_.open(
        {[this](tasks::DeviceInfo info, std::shared_ptr<Connection> c) { on_join(info, std::move(c)); },
         [this](const Error& why) { end(why); }});
    if (options_.handle_signals) await_signals();
    watch_.start();
    start_up_.begin({seconds(options_.join_seconds.value_or(start_seconds(ranks_))),
                     seconds(std::max(options_.heartbeat_seconds, kLeastStopped)),
                     [this](const Error& overdue) { end(overdue); }});
    io_.run();
    ErrorCode ignored;
    signals_.clear(ignored);  // from here on nobody would hear of one
    outcome_.devices = members_.infos();
    outcome_.all_joined = members_.all_joined();
    outcome_.any_started = !outcome_.devices.empty() || start_up_.any_seen();
    return std::move(outcome_);
  }

  void launcher_started(int pid) { start_up_.add_launcher(pid, ""); }

  void launcher_ended(Error cause) {
    asio::post(io_, [this, cause = std::move(cause)] { watch_.note({Symptom::kLauncher, -1, "", cause}); });
  }

 private:
  enum class Phase { kJoining, kRunning, kDraining, kEnding, kEnded };

  template <class Action>
  void after(asio::steady_timer& timer, Clock::duration time, Action action) {
    timer.expires_after(time);
    timer.async_wait([action](const ErrorCode& cancelled) {
      if (!cancelled) action();
    });
  }

  // An error that the driver throws ends the run.
  template <class Action>
  void guarded(Action action) {
    try {
      action();
    } catch (const Error& e) {
      end(e);
    } catch (const std::exception& e) {
      end(Error(Code::kInternal, e.what()));
    }
  }

  // ---- Start

  void on_join(const tasks::DeviceInfo& info, std::shared_ptr<Connection> connection) {
    if (phase_ != Phase::kJoining) return connection->close();
    Member& member = members_.join(info, std::move(connection));
    member.connection->hand_over(
        [this, m = &member](pb::Message&& message) { on_message(*m, std::move(message)); },
        [this, m = &member](const std::string& reason) { on_end(*m, reason); });
    spdlog::debug("rank {} joined from {} (pid {})", info.rank, info.host, info.pid);
    // A foreign launcher: the other ranks are children of the same process.
    if (info.machine == process::machine_id())
      start_up_.add_launcher(process::parent_of(info.pid), info.mpi_job);
  }

  void on_ready(Member& member) {
    member.ready = true;
    if (phase_ == Phase::kJoining && members_.all_ready()) on_all_ready();
  }

  void on_all_ready() {
    start_up_.end();
    phase_ = Phase::kRunning;
    watch_.set_working(true);
    guarded([this] {
      const std::vector<tasks::DeviceInfo> devices = members_.infos();
      for (const tasks::Driver::Assignment& a : driver_->on_ready(devices)) send_program(a);
      recipients_.push_back(everyone());
      for (std::vector<std::int32_t>& devices : driver_->device_groups()) {
        recipients_.push_back(recipients_of(devices));
        groups_.add(std::move(devices));
      }
      pump();
    });
  }

  void send_program(const tasks::Driver::Assignment& assignment) {
    frame_.clear();
    append_frame(frame_, encode(assignment.program), options_.max_frame);
    if (assignment.ranks.empty()) return members_.broadcast(frame_);
    for (const Recipient& r : recipients_of(assignment.ranks))
      if (r.member->present()) r.member->connection->send_frame(frame_);
  }

  // ---- Groups of devices

  // A process with devices of a group.
  struct Recipient {
    Member* member;
    std::vector<std::int32_t> devices;  // empty: all of its devices
  };

  std::vector<Recipient> everyone() {
    std::vector<Recipient> all;
    for (Member& member : members_.all()) all.push_back({&member, {}});
    return all;
  }

  std::vector<Recipient> recipients_of(std::span<const std::int32_t> devices) {
    std::map<std::int32_t, Recipient> by_first_device;
    for (const std::int32_t device : devices) {
      HR_CHECK(device >= 0 && device < options_.devices);
      Member& member = members_.of_device(device);
      Recipient& recipient =
          by_first_device.try_emplace(member.devices.first, Recipient{&member, {}}).first->second;
      recipient.devices.push_back(device);
    }
    std::vector<Recipient> list;
    for (auto& [first, recipient] : by_first_device) {
      if (std::ssize(recipient.devices) == recipient.member->devices.count) recipient.devices.clear();
      list.push_back(std::move(recipient));
    }
    return list;
  }

  // ---- Work

  void pump() {
    while (std::optional<tasks::Invocation> invocation = driver_->next_within(dispatcher_)) {
      send_invocation(*invocation);
      dispatcher_.issue(std::move(*invocation));
    }
    if (dispatcher_.idle()) drain();
  }

  // Processes whose devices all belong to the group get the same frame.
  void send_invocation(const tasks::Invocation& invocation) {
    pb::Message message = encode(invocation);
    frame_.clear();
    append_frame(frame_, message, options_.max_frame);
    for (const Recipient& r : recipients_[static_cast<std::size_t>(invocation.group)]) {
      if (!r.member->present()) continue;
      if (r.devices.empty()) {
        r.member->connection->send_frame(frame_);
        continue;
      }
      message.mutable_invocation()->mutable_devices()->Assign(r.devices.begin(), r.devices.end());
      r.member->connection->send(message);
    }
  }

  // The invocation that a device must report next, to find the device to blame.
  Work work_of(std::int32_t device) const {
    const tasks::Invocation* const next = dispatcher_.awaited(device);
    if (next == nullptr) return {};
    return {next->id, driver_->describe(*next)};
  }

  void on_message(Member& member, pb::Message&& message) {
    member.heard = Clock::now();
    if (!std::exchange(member.answered, true) && members_.all_joined()) gate_.close();
    switch (message.body_case()) {
      case pb::Message::kDone: return on_report(member, std::move(*message.mutable_done()));
      case pb::Message::kHeartbeat:
        return watch_.on_heartbeat(member, std::move(*message.mutable_heartbeat()));
      case pb::Message::kFailure:
        if (const int signal = message.failure().signal(); signal != 0) return on_stopped(member, signal);
        return on_failure(member, message.failure().device(), decode(message.failure()));
      case pb::Message::kReady: return on_ready(member);
      case pb::Message::kGoodbye: member.goodbye = true; return;
      default:
        return on_failure(member, -1, Error(Code::kControl, "it sent a message that devices do not send"));
    }
  }

  void on_report(Member& member, pb::InvocationDone&& reported) {
    if (phase_ != Phase::kRunning) return;
    const std::int32_t device = reported.device();
    try {
      if (!member.devices.contains(device))
        throw Error(Code::kControl, fmt::format("it reports for device {}, which it does not host", device));
      watch_.on_report(member, device, reported.id());
      dispatcher_.collect(device, decode(std::move(reported)));
    } catch (const Error& e) {
      return on_failure(member, device, e);
    }
    guarded([this] {
      bool any = false;
      while (const tasks::Dispatcher::Completed* const done = dispatcher_.take_completed()) {
        driver_->on_done(done->invocation, done->results);
        any = true;
      }
      if (any) pump();
    });
  }

  // ---- End in good order

  void drain() {
    phase_ = Phase::kDraining;
    outcome_.all_done = true;
    watch_.set_working(false);
    pb::Message m;
    m.mutable_shutdown();
    frame_.clear();
    append_frame(frame_, m, options_.max_frame);
    members_.broadcast(frame_);
    drain_.begin(seconds(options_.drain_seconds),
                 {[this] { end(undrained()); }, [this](int pid) { leave_stopped_launcher(pid); }});
  }

  Error undrained() {
    std::string who;
    for (const Member& member : members_.all())
      if (member.present()) who += (who.empty() ? "" : ", ") + name_of(member.devices);
    return Error(Code::kDeviceHung, "all work is done, but these devices did not end within " +
                                        to_text(seconds(options_.drain_seconds)) + ": " + who);
  }

  void leave_stopped_launcher(int pid) {
    spdlog::warn(
        "all work is done; mpirun (pid {}) is stopped, the devices cannot end without it, and all are ended",
        pid);
    outcome_.launcher_stopped = true;
    abort(Error(Code::kControl, "all work is done, and mpirun is stopped"));
  }

  void on_end(Member& member, const std::string& reason) {
    // A device that may not know that it has joined comes again, or its process is found to have ended.
    if (phase_ == Phase::kJoining && !member.answered) {
      member.forget();
      return;
    }
    member.gone = true;
    const bool running = phase_ != Phase::kEnding && phase_ != Phase::kEnded;
    if (running && !member.goodbye && !member.failed)
      watch_.note(
          {Symptom::kLost, member.devices.first, "its connection ended (" + reason + ")", {}, 0, true});
    if ((phase_ == Phase::kEnding || phase_ == Phase::kDraining) && members_.all_gone() &&
        (phase_ == Phase::kEnding || !watch_.suspects_device()))
      stop();
  }

  // ---- Failure

  // `device`: -1 for all devices of the process.
  void on_failure(Member& member, std::int32_t device, const Error& error) {
    member.failed = true;
    const bool one = member.devices.contains(device);
    watch_.note({symptom_of(error), one ? device : member.devices.first, "", error, 0, !one});
  }

  void on_stopped(Member& member, int signal) {
    member.failed = true;
    watch_.note({Symptom::kStopped, member.devices.first, "", {}, signal, true});
  }

  void await_signals() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) signals_.add(signal);
    signals_.async_wait([this](const ErrorCode& cancelled, int signal) {
      if (cancelled) return;
      on_signal(signal);
      await_signals();
    });
  }

  void on_signal(int signal) {
    if (phase_ == Phase::kEnded) return;
    if (phase_ == Phase::kEnding && outcome_.signal == 0) {  // the devices end after a loss
      outcome_.signal = signal;
      return;
    }
    if (phase_ == Phase::kEnding) {  // the user has asked a second time
      members_.kill_local();
      return stop();
    }
    interrupt(signal);
  }

  void interrupt(int signal) {
    if (phase_ == Phase::kEnding || phase_ == Phase::kEnded) return;
    outcome_.signal = signal;
    abort(Error(Code::kControl, outcome_.reason()));
  }

  // Adds to the verdict that the launcher is stopped, if it is: devices that seem to hang may be waiting for
  // it.
  Error with_stopped_launcher(const Error& verdict) const {
    const int pid = start_up_.stopped_launcher();
    if (verdict.code() != Code::kDeviceHung || pid == 0) return verdict;
    const std::string launcher = fmt::format("mpirun (pid {})", pid);
    return Error(Code::kDeviceHung, verdict.cause() + "\n  " + launcher +
                                        ", which started the devices, is stopped; they cannot end without it")
        .at(verdict.place())
        .fix("stop and continue hyperrun rather than mpirun, or all of their process group (ctrl-Z, fg)");
  }

  void end(const Error& error) {
    if (phase_ == Phase::kEnding || phase_ == Phase::kEnded) return;
    outcome_.error = error;
    try {
      driver_->on_failed(error);
    } catch (const Error& also) {  // a full disk, say, which the first error tells as well
      spdlog::warn("{}", also.what());
    }
    abort(error);
  }

  void abort(const Error& why) {
    phase_ = Phase::kEnding;
    start_up_.end();
    drain_.end();
    watch_.stop();
    members_.kill_hung();
    pb::Message m;
    m.mutable_abort()->set_code(std::string(name(why.code())));
    m.mutable_abort()->set_reason(why.cause());
    frame_.clear();
    append_frame(frame_, m, options_.max_frame);
    members_.broadcast(frame_);
    after(phase_timer_, kSelfEnd, [this] {
      members_.kill_local();
      after(phase_timer_, kForcedEnd - kSelfEnd, [this] { stop(); });
    });
    if (members_.all_gone()) stop();
  }

  void stop() {
    phase_ = Phase::kEnded;
    start_up_.kill_absent();
    drain_.end();
    watch_.stop();
    // One more turn, so that what was just sent (a rejection, an abort) leaves.
    asio::post(io_, [this] { io_.stop(); });
  }

  ControllerOptions options_;
  const std::int32_t ranks_;
  asio::io_context io_{1};
  ConnectionAcceptor gate_;
  Membership members_;
  Watch watch_;
  tasks::DeviceGroups groups_;
  std::vector<std::vector<Recipient>> recipients_;  // by group
  tasks::Dispatcher dispatcher_;
  asio::signal_set signals_;
  asio::steady_timer phase_timer_;
  std::string address_;
  StartUp start_up_;
  Drain drain_{io_, [this] { return start_up_.stopped_launcher(); }};
  tasks::Driver* driver_ = nullptr;
  Phase phase_ = Phase::kJoining;
  std::string frame_;  // scratch
  Outcome outcome_;
};

Controller::Controller(ControllerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Controller::~Controller() = default;
const std::string& Controller::address() const { return impl_->address(); }
Outcome Controller::run(tasks::Driver& driver) { return impl_->run(driver); }
void Controller::launcher_started(int pid) { impl_->launcher_started(pid); }
void Controller::launcher_ended(Error cause) { impl_->launcher_ended(std::move(cause)); }

}  // namespace hyperrun::control
