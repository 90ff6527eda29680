#include "runtime/control/handshake.h"

#include <fmt/core.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/control/auth.h"
#include "runtime/control/start_limit.h"
#include "runtime/process/host.h"

namespace hyperrun::control {
namespace {

using ErrorCode = boost::system::error_code;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{50};
constexpr std::chrono::milliseconds kLook{500};  // period of looking whether the launcher is still there
constexpr std::chrono::seconds kRefused{
    1};                              // limit of refusals by all addresses: nobody listens there any more
constexpr double kPeerSeconds = 15;  // limit of the silence of the controller's host, not of its program

struct Address {
  std::string text, host, port;
  std::string why_not = "not tried";  // not reached because of this
};

// Reads "host:port" or "[IPv6 address]:port".
Address parse_one(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, std::min(colon, text.size()));
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  const bool more_colons = !brackets && host.find(':') != std::string::npos;
  if (colon == std::string::npos || host.empty() || colon + 1 == text.size() || more_colons)
    throw Error(Code::kControl, "'" + text + "' is no address of a controller")
        .legal("host:port or [IPv6 address]:port")
        .at("HYPERRUN_CONTROLLER");
  return {text, host, text.substr(colon + 1)};
}

std::vector<Address> parse(const std::string& list) {
  std::vector<Address> addresses;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    addresses.push_back(parse_one(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return addresses;
}

Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string identity(const DeviceLinkOptions& options) {
  pb::Identity id;
  id.set_rank(options.rank);
  id.set_world_size(options.world_size);
  id.set_host(process::host_name());
  id.set_machine(options.machine.empty() ? process::machine_id() : options.machine);
  id.set_pid(getpid());
  id.set_version(options.version);
  id.set_mpi_job(process::mpi_job_id());
  return id.SerializeAsString();
}

// The limits of an attempt's parts.
struct Limits {
  Clock::time_point connected;  // until the connection is there
  Clock::duration silence;      // from then to the controller's first message
  Clock::time_point admitted;   // until the end of the conversation
};

// One attempt at one address.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(asio::io_context& io, const DeviceLinkOptions& options, Connection::OnMessage on_message,
          Connection::OnEnd on_end)
      : options_(options),
        on_message_(std::move(on_message)),
        on_end_(std::move(on_end)),
        resolver_(io),
        socket_(io),
        timer_(io) {}

  void start(const Address& address, const Limits& limits) {
    limits_ = limits;
    give_up_at(std::min(limits_.connected, limits_.admitted));
    resolver_.async_resolve(address.host, address.port,
                            [self = shared_from_this()](const ErrorCode& error, const auto& results) {
                              if (error) return self->give_up(error.message());
                              self->connect(results);
                            });
  }

  void give_up(const std::string& why) {
    if (over_) return;
    why_not_ = why;
    finish();
  }

  bool over() const { return over_; }
  bool refused() const { return refused_; }  // true if the host answers and nobody listens
  const std::string& why_not() const { return why_not_; }
  const std::optional<Error>& refusal() const { return refusal_; }
  std::optional<Joined> take() { return std::move(joined_); }

 private:
  void give_up_at(Clock::time_point when) {
    timer_.expires_at(when);
    timer_.async_wait([self = shared_from_this()](const ErrorCode& cancelled) {
      if (!cancelled) self->give_up("it does not answer");
    });
  }

  void connect(const tcp::resolver::results_type& to) {
    if (over_) return;
    asio::async_connect(socket_, to, [self = shared_from_this()](const ErrorCode& error, const auto&) {
      if (self->over_) return;
      if (error) {
        self->refused_ = error == asio::error::connection_refused;
        return self->give_up(error.message());
      }
      self->converse();
    });
  }

  void converse() {
    give_up_at(std::min(Clock::now() + limits_.silence, limits_.admitted));
    connection_ = std::make_shared<Connection>(std::move(socket_), options_.max_frame);
    connection_->set_peer_timeout(kPeerSeconds);
    connection_->start([self = shared_from_this()](pb::Message&& m) { self->on_message(m); },
                       [self = shared_from_this()](const std::string& reason) { self->give_up(reason); });
  }

  void on_message(const pb::Message& m) {
    if (m.has_challenge() && identity_.empty()) return answer(m.challenge());
    if (m.has_reject()) return refuse(m.reject());
    if (m.has_welcome() && !identity_.empty()) return enter(m.welcome());
    give_up("it does not speak as a controller does");
  }

  void answer(const pb::Challenge& challenge) {
    if (challenge.nonce().size() != kNonceBytes) return give_up("it does not speak as a controller does");
    give_up_at(limits_.admitted);
    challenge_ = challenge.nonce();
    identity_ = identity(options_);
    pb::Message m;
    m.mutable_hello()->set_identity(identity_);
    m.mutable_hello()->set_nonce(nonce_);
    m.mutable_hello()->set_mac(sign(options_.secret, Side::kDevice, challenge_, nonce_, identity_));
    connection_->send(m);
  }

  void refuse(const pb::Reject& reject) {
    refusal_ = Error(code_from_name(reject.code()),
                     fmt::format("the controller rejected rank {}: {}", options_.rank, reject.reason()));
    finish();
  }

  void enter(const pb::Welcome& welcome) {
    if (!equal(welcome.mac(), sign(options_.secret, Side::kController, challenge_, nonce_, identity_)))
      return give_up("it does not know the run's secret");
    connection_->hand_over(on_message_, on_end_);
    joined_ = Joined{std::exchange(connection_, nullptr), welcome.heartbeat_seconds(), welcome.devices()};
    finish();
  }

  void finish() {
    over_ = true;
    timer_.cancel();
    resolver_.cancel();
    ErrorCode ignored;  // closing cannot be refused
    socket_.close(ignored);
    if (connection_) std::exchange(connection_, nullptr)->close();
  }

  const DeviceLinkOptions& options_;
  Limits limits_;
  Connection::OnMessage on_message_;
  Connection::OnEnd on_end_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::shared_ptr<Connection> connection_;
  std::string challenge_, nonce_ = random_bytes(kNonceBytes), identity_;
  bool over_ = false, refused_ = false;
  std::string why_not_;
  std::optional<Error> refusal_;
  std::optional<Joined> joined_;
};

Error orphaned(std::int32_t rank) {
  return Error(Code::kControl, fmt::format("the launcher of rank {} is gone", rank));
}

Error unreachable(std::int32_t rank, const std::vector<Address>& addresses) {
  std::string reasons;
  for (const Address& a : addresses) reasons += (reasons.empty() ? "" : "; ") + a.text + ": " + a.why_not;
  return Error(Code::kControl, fmt::format("rank {} cannot reach the controller at {}", rank, reasons))
      .fix("is the controller alive, and can this host reach it?");
}

}  // namespace

Joined join_run(asio::io_context& io, const DeviceLinkOptions& options, Connection::OnMessage on_message,
                Connection::OnEnd on_end) {
  std::vector<Address> addresses = parse(options.controller);
  const pid_t launcher = getppid();
  auto listened = Clock::now();  // time at which somebody listened, or may have
  const Clock::duration all =
      duration(options.connect_seconds.value_or(2 * start_seconds(options.world_size)));
  const auto deadline = Clock::now() + all;
  Clock::duration patience = addresses.size() == 1 ? all : duration(options.patience_seconds);
  for (std::size_t i = 0;; ++i) {
    if (i > 0 && i % addresses.size() == 0) patience = std::min(2 * patience, all);
    Address& address = addresses[i % addresses.size()];
    const auto attempt = std::make_shared<Attempt>(io, options, on_message, on_end);
    attempt->start(address, {Clock::now() + duration(options.attempt_seconds), patience, deadline});
    io.restart();
    while (!attempt->over()) {
      io.run_one_for(kLook);
      if (getppid() != launcher) attempt->give_up("the launcher is gone");
    }
    if (auto joined = attempt->take()) return std::move(*joined);
    if (attempt->refusal()) throw *attempt->refusal();
    // Keep an earlier attempt's finding if the deadline cuts a later one short.
    if (i < addresses.size() || Clock::now() < deadline) address.why_not = attempt->why_not();
    if (!attempt->refused()) listened = Clock::now();
    if (getppid() != launcher) throw orphaned(options.rank);
    if (Clock::now() + kPause >= deadline || Clock::now() - listened > kRefused)
      throw unreachable(options.rank, addresses);
    bool paused = false;  // a name may still be looked up, which may take longer than the pause
    asio::steady_timer pause(io, kPause);
    pause.async_wait([&paused](const ErrorCode&) { paused = true; });
    while (!paused) io.run_one();
  }
}

}  // namespace hyperrun::control
