#include "collectives/mpi_port.h"

#include <fmt/core.h>

#include <climits>
#include <exception>
#include <string>

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

MpiPort::MpiPort(MPI_Comm world) {
  check(MPI_Comm_dup(world, &comm_), "MPI_Comm_dup");
  requests_.reserve(kTickets);
  free_.reserve(kTickets);
}

// Freeing the communicator is collective, so an unwinding error skips it: the peers are elsewhere.
MpiPort::~MpiPort() {
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
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
  check(MPI_Isend(data, count(bytes), MPI_BYTE, to, tag, comm_, &requests_[static_cast<std::size_t>(t)]),
        "MPI_Isend");
  return t;
}

MessagePort::Ticket MpiPort::receive(std::byte* data, std::int64_t bytes, int from, int tag) {
  const Ticket t = take();
  check(MPI_Irecv(data, count(bytes), MPI_BYTE, from, tag, comm_, &requests_[static_cast<std::size_t>(t)]),
        "MPI_Irecv");
  return t;
}

bool MpiPort::test(Ticket ticket) {
  int done = 0;
  check(MPI_Test(&requests_[static_cast<std::size_t>(ticket)], &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0) free_.push_back(ticket);
  return done != 0;
}

}  // namespace hyperrun
