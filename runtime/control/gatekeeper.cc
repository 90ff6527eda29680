#include "runtime/control/gatekeeper.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "runtime/control/auth.h"

namespace hyperrun::control {

using ErrorCode = boost::system::error_code;
using asio::ip::tcp;

namespace {

constexpr std::size_t kVisitorFrame = 4096;
constexpr std::size_t kVisitors = 8192;  // at once, so that strangers cannot use up descriptors
constexpr std::chrono::seconds kVisitTime{5};
constexpr std::chrono::milliseconds kPause{100};

tcp::endpoint endpoint(bool loopback) {
  return loopback ? tcp::endpoint(asio::ip::address_v4::loopback(), 0) : tcp::endpoint(tcp::v4(), 0);
}

}  // namespace

struct Gatekeeper::Visit {
  Visit(asio::io_context& io, tcp::socket socket)
      : connection(std::make_shared<Connection>(std::move(socket), kVisitorFrame)), timer(io, kVisitTime) {}

  std::shared_ptr<Connection> connection;
  asio::steady_timer timer;
  std::string nonce = random_bytes(kNonceBytes);
  bool rejected = false;
};

Gatekeeper::Gatekeeper(asio::io_context& io, Rules rules, bool loopback)
    : io_(io), rules_(std::move(rules)), acceptor_(io), pause_(io) {
  try {
    acceptor_.open(tcp::v4());
    acceptor_.bind(endpoint(loopback));
    acceptor_.listen(1024);
  } catch (const boost::system::system_error& e) {
    throw Error(Code::kControl, std::string("the controller cannot listen: ") + e.what());
  }
}

int Gatekeeper::port() const { return acceptor_.local_endpoint().port(); }

void Gatekeeper::open(Handlers handlers) {
  handlers_ = std::move(handlers);
  accept();
}

void Gatekeeper::close() {
  ErrorCode ignored;  // closing cannot be refused
  acceptor_.close(ignored);
  pause_.cancel();
  for (const auto& visit : std::exchange(visits_, {})) {
    visit->timer.cancel();
    visit->connection->close();
  }
}

void Gatekeeper::accept() {
  acceptor_.async_accept([this](const ErrorCode& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error) return accept_later();
    if (visits_.size() < kVisitors) greet(std::move(socket));
    accept();
  });
}

// Out of descriptors, say: trying again at once would only burn the processor.
void Gatekeeper::accept_later() {
  pause_.expires_after(kPause);
  pause_.async_wait([this](const ErrorCode& cancelled) {
    if (!cancelled && acceptor_.is_open()) accept();
  });
}

void Gatekeeper::greet(tcp::socket socket) {
  auto visit = std::make_shared<Visit>(io_, std::move(socket));
  visits_.insert(visit);
  visit->timer.async_wait([this, visit](const ErrorCode& cancelled) {
    if (cancelled) return;
    visit->connection->close();
    visits_.erase(visit);
  });
  // Weak: the connection holds this handler, and the visit holds the connection.
  const std::weak_ptr<Visit> weak = visit;
  visit->connection->start(
      [this, weak](pb::Message&& m) {
        if (const auto v = weak.lock()) on_message(v, std::move(m));
      },
      [this, weak](const std::string& reason) {
        spdlog::debug("a visitor left before it joined: {}", reason);
        const auto v = weak.lock();
        if (!v) return;
        v->timer.cancel();
        visits_.erase(v);
      });
  pb::Message challenge;
  challenge.mutable_challenge()->set_nonce(visit->nonce);
  visit->connection->send(challenge);
}

void Gatekeeper::on_message(const std::shared_ptr<Visit>& visit, pb::Message&& message) {
  if (visit->rejected) return;
  pb::Identity identity;
  const pb::Hello& hello = message.hello();
  if (!message.has_hello() || !authentic(*visit, hello) || !identity.ParseFromString(hello.identity()))
    return reject(visit, Error(Code::kControl, "it does not know the run's secret (HYPERRUN_SECRET)"));
  if (ranks_.contains(identity.rank()))
    return reject(visit,
                  Error(Code::kControl, "rank " + std::to_string(identity.rank()) + " has joined already"));
  if (const auto why = objection(identity)) {
    reject(visit, *why);
    return handlers_.misfit(*why);
  }
  welcome(visit, hello, identity);
}

bool Gatekeeper::authentic(const Visit& visit, const pb::Hello& hello) const {
  return hello.nonce().size() == kNonceBytes &&
         equal(hello.mac(), sign(rules_.secret, Side::kDevice, visit.nonce, hello.nonce(), hello.identity()));
}

std::optional<Error> Gatekeeper::objection(const pb::Identity& identity) const {
  const std::string needed = std::to_string(rules_.devices);
  if (const int ranks = identity.world_size(); ranks != rules_.devices)
    return Error(ranks < rules_.devices ? Code::kTooFewRanks : Code::kMpi,
                 std::string(ranks < rules_.devices ? "" : "too many ranks: ") + "the job needs " + needed +
                     " devices, but " + std::to_string(ranks) + " ranks were started")
        .fix("start it with mpirun --oversubscribe -np " + needed + ", or let hyperrun start mpirun");
  if (identity.rank() < 0 || identity.rank() >= rules_.devices)
    return Error(Code::kControl,
                 "there is no rank " + std::to_string(identity.rank()) + " in a run of " + needed);
  if (identity.version() != rules_.version)
    return Error(Code::kControl, "rank " + std::to_string(identity.rank()) + " on host " + identity.host() +
                                     " is version " + identity.version() + ", the controller " +
                                     rules_.version)
        .fix("install one version on all hosts");
  return std::nullopt;
}

void Gatekeeper::reject(const std::shared_ptr<Visit>& visit, const Error& why) {
  spdlog::warn("rejected a connection: {}", why.cause());
  pb::Message m;
  m.mutable_reject()->set_code(std::string(name(why.code())));
  m.mutable_reject()->set_reason(why.cause());
  visit->rejected = true;
  visit->connection->send(m);
  visit->connection->finish();  // its end, or the timer's, then closes it
}

void Gatekeeper::welcome(const std::shared_ptr<Visit>& visit, const pb::Hello& hello,
                         const pb::Identity& identity) {
  visit->timer.cancel();
  ranks_.insert(identity.rank());
  pb::Message m;
  m.mutable_welcome()->set_mac(
      sign(rules_.secret, Side::kController, visit->nonce, hello.nonce(), hello.identity()));
  m.mutable_welcome()->set_heartbeat_seconds(rules_.heartbeat_seconds);
  visit->connection->send(m);
  visit->connection->set_max_frame(rules_.max_frame);
  const std::shared_ptr<Connection> connection = visit->connection;
  visits_.erase(visit);
  handlers_.joined({identity.rank(), identity.host(), identity.machine(), identity.pid(), identity.mpi_job()},
                   connection);
}

}  // namespace hyperrun::control
