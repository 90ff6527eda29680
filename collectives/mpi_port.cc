#include "collectives/mpi_port.h"

#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <exception>
#include <string>
#include <utility>

#include "memory/mpi_turn.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::size_t kTickets = 1024;  // the list grows beyond that, which no steady state needs

void check(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  throw Error(Code::kMpi, fmt::format("{} failed with {}", what, rc))
      .fix("see the log of mpirun; a network that MPI cannot use needs OMPI_MCA_btl_tcp_if_include");
}

int count(std::int64_t bytes) {
  HR_CHECK(bytes >= 0 && bytes <= INT_MAX, "a message has at most 2 GiB");
  return static_cast<int>(bytes);
}

}  // namespace

MpiMessages::MpiMessages(const MpiHosts& hosts) {
  check(MPI_Comm_dup(hosts.world(), &comm_), "MPI_Comm_dup");
  for (int d = 0; d < hosts.topology().size(); ++d) {
    process_of_.push_back(hosts.process(d));
    place_of_.push_back(d - hosts.block(process_of_.back()).first);
    most_ = std::max(most_, place_of_.back() + 1);
  }
}

// Freeing the communicator is collective, so an unwinding error skips it: the peers are elsewhere.
MpiMessages::~MpiMessages() {
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
}

int MpiMessages::tag(int from, int to, int tag) const {
  return (tag * most_ + place_of_[static_cast<std::size_t>(from)]) * most_ +
         place_of_[static_cast<std::size_t>(to)];
}

MpiPort::MpiPort(std::shared_ptr<MpiMessages> messages, int device)
    : messages_(std::move(messages)), device_(device) {
  requests_.reserve(kTickets);
  free_.reserve(kTickets);
}

MessagePort::Ticket MpiPort::take() {
  if (free_.empty()) {
    requests_.push_back(MPI_REQUEST_NULL);
    return static_cast<Ticket>(requests_.size()) - 1;
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  return ticket;
}

MessagePort::Ticket MpiPort::send(const std::byte* data, std::int64_t bytes, int to, int tag) {
  const Ticket t = take();
  const std::lock_guard turn(mpi_turn());
  check(
      MPI_Isend(data, count(bytes), MPI_BYTE, messages_->process_of_[static_cast<std::size_t>(to)],
                messages_->tag(device_, to, tag), messages_->comm_, &requests_[static_cast<std::size_t>(t)]),
      "MPI_Isend");
  return t;
}

MessagePort::Ticket MpiPort::receive(std::byte* data, std::int64_t bytes, int from, int tag) {
  const Ticket t = take();
  const std::lock_guard turn(mpi_turn());
  check(MPI_Irecv(data, count(bytes), MPI_BYTE, messages_->process_of_[static_cast<std::size_t>(from)],
                  messages_->tag(from, device_, tag), messages_->comm_,
                  &requests_[static_cast<std::size_t>(t)]),
        "MPI_Irecv");
  return t;
}

bool MpiPort::test(Ticket ticket) {
  const std::lock_guard turn(mpi_turn());
  int done = 0;
  check(MPI_Test(&requests_[static_cast<std::size_t>(ticket)], &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0) free_.push_back(ticket);
  return done != 0;
}

}  // namespace hyperrun
