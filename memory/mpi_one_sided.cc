#include "memory/mpi_one_sided.h"

#include <exception>
#include <string>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

void check(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(rc, text.data(), &length);
  throw Error(Code::kMpi,
              std::string(what) + ": " + std::string(text.data(), static_cast<std::size_t>(length)))
      .fix("see the log of mpirun; a network that MPI cannot use needs OMPI_MCA_btl_tcp_if_include");
}

}  // namespace

// Errors are returned. By default MPI would end the job with a message of its own.
MpiOneSided::MpiOneSided(const MpiHosts& hosts, Arena& segment) {
  check(MPI_Comm_dup(hosts.world(), &world_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
  check(MPI_Win_create(segment.base(), segment.budget().value, 1, MPI_INFO_NULL, world_, &window_),
        "MPI_Win_create");
  MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
}

MpiOneSided::~MpiOneSided() {
  if (std::uncaught_exceptions() > 0) return;
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
  MPI_Comm_free(&world_);
}

void MpiOneSided::get(int lane, std::byte* into, Bytes bytes, int rank, Bytes offset) {
  Operation& o = lanes_[static_cast<std::size_t>(lane)];
  const int n = static_cast<int>(bytes.value);
  check(MPI_Rget(into, n, MPI_BYTE, rank, offset.value, n, MPI_BYTE, window_, &o.request), "MPI_Rget");
  o.put_to = kNoPut;
}

void MpiOneSided::put(int lane, const std::byte* from, Bytes bytes, int rank, Bytes offset) {
  Operation& o = lanes_[static_cast<std::size_t>(lane)];
  const int n = static_cast<int>(bytes.value);
  check(MPI_Rput(from, n, MPI_BYTE, rank, offset.value, n, MPI_BYTE, window_, &o.request), "MPI_Rput");
  o.put_to = rank;
}

// An MPI put completes when its bytes are sent. Only a flush guarantees that they have arrived. Its wait is
// short, as they are already on their way.
bool MpiOneSided::test(int lane) {
  Operation& o = lanes_[static_cast<std::size_t>(lane)];
  int done = 0;
  check(MPI_Test(&o.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done == 0) return false;
  if (o.put_to != kNoPut) check(MPI_Win_flush(o.put_to, window_), "MPI_Win_flush");
  return true;
}

void MpiOneSided::serve() {
  int none = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_, &none, MPI_STATUS_IGNORE);
}

}  // namespace hyperrun
