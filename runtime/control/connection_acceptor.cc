#include "runtime/control/connection_acceptor.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <boost/asio/ip/v6_only.hpp>
#include <chrono>
#include <cmath>

#include "runtime/control/auth.h"

namespace hyperrun::control {

using ErrorCode = boost::system::error_code;
using asio::ip::tcp;

namespace {

constexpr std::size_t kPendingFrame = 4096;
constexpr std::chrono::milliseconds kPause{100};
constexpr int kBacklog = 4096;

// The most connections at once that are not admitted: all devices may come at once, some for a second time
// before the first is known to be over, and strangers must not use up descriptors.
std::size_t most_pending(std::int32_t devices) { return 2 * static_cast<std::size_t>(devices) + 64; }

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(1000 * seconds));
}

}  // namespace

struct ConnectionAcceptor::PendingConnection {
  PendingConnection(asio::io_context& io, tcp::socket socket, std::uint64_t number_of_it, double seconds)
      : number(number_of_it),
        connection(std::make_shared<Connection>(std::move(socket), kPendingFrame)),
        timer(io, milliseconds(seconds)) {}

  std::uint64_t number;
  std::shared_ptr<Connection> connection;
  asio::steady_timer timer;
  std::string nonce = random_bytes(kNonceBytes);
  bool rejected = false;
};

ConnectionAcceptor::ConnectionAcceptor(asio::io_context& io, Rules rules, bool loopback)
    : io_(io), rules_(std::move(rules)), acceptor_(io), pause_(io) {
  if (!loopback) {
    try {
      listen({tcp::v6(), 0});
      return;
    } catch (const boost::system::system_error&) {  // the host has no IPv6
      ErrorCode ignored;
      acceptor_.close(ignored);
    }
  }
  try {
    listen(loopback ? tcp::endpoint(asio::ip::address_v4::loopback(), 0) : tcp::endpoint(tcp::v4(), 0));
  } catch (const boost::system::system_error& e) {
    throw Error(Code::kControl, std::string("the controller cannot listen: ") + e.what());
  }
}

// Throws system_error. An IPv6 socket takes IPv4 connections, too.
void ConnectionAcceptor::listen(const tcp::endpoint& at) {
  acceptor_.open(at.protocol());
  if (at.protocol() == tcp::v6()) acceptor_.set_option(asio::ip::v6_only(false));
  acceptor_.bind(at);
  acceptor_.listen(kBacklog);
}

int ConnectionAcceptor::port() const { return acceptor_.local_endpoint().port(); }

void ConnectionAcceptor::open(Handlers handlers) {
  handlers_ = std::move(handlers);
  accept();
}

void ConnectionAcceptor::close() {
  ErrorCode ignored;  // closing cannot be refused
  acceptor_.close(ignored);
  pause_.cancel();
  for (const auto& [number, pending] : std::exchange(pending_, {})) {
    pending->timer.cancel();
    pending->connection->close();
  }
}

void ConnectionAcceptor::accept() {
  acceptor_.async_accept([this](const ErrorCode& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error) return accept_later();
    if (pending_.size() >= most_pending(rules_.devices)) drop(pending_.begin()->second);
    greet(std::move(socket));
    accept();
  });
}

void ConnectionAcceptor::drop(const std::shared_ptr<PendingConnection>& pending) {
  const std::shared_ptr<PendingConnection> kept = pending;  // the caller's may be the map's own
  kept->timer.cancel();
  kept->connection->close();
  pending_.erase(kept->number);
}

// Accepts after a pause. If descriptors have run out, trying again at once would only burn the processor.
void ConnectionAcceptor::accept_later() {
  pause_.expires_after(kPause);
  pause_.async_wait([this](const ErrorCode& cancelled) {
    if (!cancelled && acceptor_.is_open()) accept();
  });
}

void ConnectionAcceptor::greet(tcp::socket socket) {
  auto pending =
      std::make_shared<PendingConnection>(io_, std::move(socket), ++accepted_, rules_.pending_seconds);
  pending_.emplace(pending->number, pending);
  pending->timer.async_wait([this, pending](const ErrorCode& cancelled) {
    if (!cancelled) drop(pending);
  });
  // The pointer is weak: the connection holds this handler, and the pending connection holds the connection.
  const std::weak_ptr<PendingConnection> weak = pending;
  pending->connection->start(
      [this, weak](pb::Message&& m) {
        if (const auto v = weak.lock()) on_message(v, std::move(m));
      },
      [this, weak](const std::string& reason) {
        spdlog::debug("a visitor left before it joined: {}", reason);
        const auto v = weak.lock();
        if (!v) return;
        v->timer.cancel();
        pending_.erase(v->number);
      });
  pb::Message challenge;
  challenge.mutable_challenge()->set_nonce(pending->nonce);
  pending->connection->send(challenge);
}

void ConnectionAcceptor::on_message(const std::shared_ptr<PendingConnection>& pending,
                                    pb::Message&& message) {
  if (pending->rejected) return;
  pb::Identity identity;
  const pb::Hello& hello = message.hello();
  if (!message.has_hello() || !authentic(*pending, hello) || !identity.ParseFromString(hello.identity()))
    return reject(pending, Error(Code::kControl, "it does not know the run's secret (HYPERRUN_SECRET)"));
  if (taken(*pending, identity))
    return reject(pending, Error(Code::kControl, fmt::format("rank {} has joined already", identity.rank())));
  if (const auto why = objection(identity)) {
    reject(pending, *why);
    return handlers_.incompatible(*why);
  }
  welcome(pending, hello, identity);
}

bool ConnectionAcceptor::authentic(const PendingConnection& pending, const pb::Hello& hello) const {
  return hello.nonce().size() == kNonceBytes &&
         equal(hello.mac(),
               sign(rules_.secret, Side::kDevice, pending.nonce, hello.nonce(), hello.identity()));
}

// Whether another process has joined as this rank, or the same one by a later connection: then this one is a
// remainder that the device has given up.
bool ConnectionAcceptor::taken(const PendingConnection& pending, const pb::Identity& identity) const {
  const auto i = admitted_.find(identity.rank());
  if (i == admitted_.end()) return false;
  const Admitted& before = i->second;
  return before.machine != identity.machine() || before.pid != identity.pid() ||
         before.connection > pending.number;
}

std::optional<Error> ConnectionAcceptor::objection(const pb::Identity& identity) const {
  if (const int ranks = identity.world_size(); ranks != rules_.ranks)
    return Error(ranks < rules_.ranks ? Code::kTooFewRanks : Code::kMpi,
                 fmt::format("the run has {} ranks, but this process is one of {}", rules_.ranks, ranks))
        .fix(fmt::format("start it with mpirun --oversubscribe -np {}, or let hyperrun start mpirun",
                         rules_.ranks));
  if (identity.rank() < 0 || identity.rank() >= rules_.ranks)
    return Error(Code::kControl,
                 fmt::format("there is no rank {} in a run of {}", identity.rank(), rules_.ranks));
  if (identity.version() != rules_.version)
    return Error(Code::kControl,
                 fmt::format("rank {} on host {} is version {}, the controller {}", identity.rank(),
                             identity.host(), identity.version(), rules_.version))
        .fix("install one version on all hosts");
  return std::nullopt;
}

void ConnectionAcceptor::reject(const std::shared_ptr<PendingConnection>& pending, const Error& why) {
  spdlog::warn("rejected a connection: {}", why.cause());
  pb::Message m;
  m.mutable_reject()->set_code(std::string(name(why.code())));
  m.mutable_reject()->set_reason(why.cause());
  pending->rejected = true;
  pending->connection->send(m);
  pending->connection->finish();  // the connection's end, or the timer's, then closes it
}

void ConnectionAcceptor::welcome(const std::shared_ptr<PendingConnection>& pending, const pb::Hello& hello,
                                 const pb::Identity& identity) {
  pending->timer.cancel();
  admitted_.insert_or_assign(identity.rank(), Admitted{identity.machine(), identity.pid(), pending->number});
  pb::Message m;
  m.mutable_welcome()->set_mac(
      sign(rules_.secret, Side::kController, pending->nonce, hello.nonce(), hello.identity()));
  m.mutable_welcome()->set_heartbeat_seconds(rules_.heartbeat_seconds);
  m.mutable_welcome()->set_devices(rules_.devices);
  pending->connection->send(m);
  pending->connection->set_max_frame(rules_.max_frame);
  const std::shared_ptr<Connection> connection = pending->connection;
  pending_.erase(pending->number);
  handlers_.joined({identity.rank(), identity.host(), identity.machine(), identity.pid(), identity.mpi_job()},
                   connection);
}

}  // namespace hyperrun::control
