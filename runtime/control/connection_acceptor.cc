#include "runtime/control/connection_acceptor.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include "runtime/control/auth.h"

namespace hyperrun::control {

using ErrorCode = boost::system::error_code;
using asio::ip::tcp;

namespace {

constexpr std::size_t kPendingFrame = 4096;
constexpr std::size_t kMostPending = 8192;  // limit at once, so that strangers cannot use up descriptors
constexpr std::chrono::seconds kPendingTime{5};
constexpr std::chrono::milliseconds kPause{100};

tcp::endpoint endpoint(bool loopback) {
  return loopback ? tcp::endpoint(asio::ip::address_v4::loopback(), 0) : tcp::endpoint(tcp::v4(), 0);
}

}  // namespace

struct ConnectionAcceptor::PendingConnection {
  PendingConnection(asio::io_context& io, tcp::socket socket)
      : connection(std::make_shared<Connection>(std::move(socket), kPendingFrame)), timer(io, kPendingTime) {}

  std::shared_ptr<Connection> connection;
  asio::steady_timer timer;
  std::string nonce = random_bytes(kNonceBytes);
  bool rejected = false;
};

ConnectionAcceptor::ConnectionAcceptor(asio::io_context& io, Rules rules, bool loopback)
    : io_(io), rules_(std::move(rules)), acceptor_(io), pause_(io) {
  try {
    acceptor_.open(tcp::v4());
    acceptor_.bind(endpoint(loopback));
    acceptor_.listen(1024);
  } catch (const boost::system::system_error& e) {
    throw Error(Code::kControl, std::string("the controller cannot listen: ") + e.what());
  }
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
  for (const auto& pending : std::exchange(pending_, {})) {
    pending->timer.cancel();
    pending->connection->close();
  }
}

void ConnectionAcceptor::accept() {
  acceptor_.async_accept([this](const ErrorCode& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error) return accept_later();
    if (pending_.size() < kMostPending) greet(std::move(socket));
    accept();
  });
}

// Accepts after a pause. If descriptors have run out, trying again at once would only burn the processor.
void ConnectionAcceptor::accept_later() {
  pause_.expires_after(kPause);
  pause_.async_wait([this](const ErrorCode& cancelled) {
    if (!cancelled && acceptor_.is_open()) accept();
  });
}

void ConnectionAcceptor::greet(tcp::socket socket) {
  auto pending = std::make_shared<PendingConnection>(io_, std::move(socket));
  pending_.insert(pending);
  pending->timer.async_wait([this, pending](const ErrorCode& cancelled) {
    if (cancelled) return;
    pending->connection->close();
    pending_.erase(pending);
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
        pending_.erase(v);
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
  if (ranks_.contains(identity.rank()))
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
  ranks_.insert(identity.rank());
  pb::Message m;
  m.mutable_welcome()->set_mac(
      sign(rules_.secret, Side::kController, pending->nonce, hello.nonce(), hello.identity()));
  m.mutable_welcome()->set_heartbeat_seconds(rules_.heartbeat_seconds);
  m.mutable_welcome()->set_devices(rules_.devices);
  pending->connection->send(m);
  pending->connection->set_max_frame(rules_.max_frame);
  const std::shared_ptr<Connection> connection = pending->connection;
  pending_.erase(pending);
  handlers_.joined({identity.rank(), identity.host(), identity.machine(), identity.pid(), identity.mpi_job()},
                   connection);
}

}  // namespace hyperrun::control
