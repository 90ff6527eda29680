#include "memory/mpi_one_sided.h"

#include <exception>
#include <string>

#include "memory/mpi_turn.h"
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
MpiLoans::MpiLoans(const MpiHosts& hosts, std::span<Arena> segments) {
  std::byte* const begin = segments.front().base();
  const std::byte* const end = segments.back().base() + segments.back().budget().value;
  std::vector<std::int64_t> own;
  for (const Arena& segment : segments) own.push_back(segment.base() - begin);
  begin_of_ = hosts.gather(own);
  for (int d = 0; d < hosts.topology().size(); ++d) process_of_.push_back(hosts.process(d));
  check(MPI_Comm_dup(hosts.world(), &world_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
  check(MPI_Win_create(begin, end - begin, 1, MPI_INFO_NULL, world_, &window_), "MPI_Win_create");
  MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
}

MpiLoans::~MpiLoans() {
  if (std::uncaught_exceptions() > 0) return;
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
  MPI_Comm_free(&world_);
}

void MpiOneSided::get(int lane, std::byte* into, Bytes bytes, int device, Bytes offset) {
  Operation& o = lanes_[static_cast<std::size_t>(lane)];
  const int n = static_cast<int>(bytes.value),
            process = loans_->process_of_[static_cast<std::size_t>(device)];
  const MPI_Aint at = loans_->begin_of_[static_cast<std::size_t>(device)] + offset.value;
  const std::lock_guard turn(mpi_turn());
  check(MPI_Rget(into, n, MPI_BYTE, process, at, n, MPI_BYTE, loans_->window_, &o.request), "MPI_Rget");
  o.put_to = kNoPut;
}

void MpiOneSided::put(int lane, const std::byte* from, Bytes bytes, int device, Bytes offset) {
  Operation& o = lanes_[static_cast<std::size_t>(lane)];
  const int n = static_cast<int>(bytes.value),
            process = loans_->process_of_[static_cast<std::size_t>(device)];
  const MPI_Aint at = loans_->begin_of_[static_cast<std::size_t>(device)] + offset.value;
  const std::lock_guard turn(mpi_turn());
  check(MPI_Rput(from, n, MPI_BYTE, process, at, n, MPI_BYTE, loans_->window_, &o.request), "MPI_Rput");
  o.put_to = process;
}

// An MPI put completes when its bytes are sent. Only a flush guarantees that they have arrived. Its wait is
// short, as they are already on their way, and it serves other processes meanwhile.
bool MpiOneSided::test(int lane) {
  Operation& o = lanes_[static_cast<std::size_t>(lane)];
  const std::lock_guard turn(mpi_turn());
  int done = 0;
  check(MPI_Test(&o.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done == 0) return false;
  if (o.put_to != kNoPut) check(MPI_Win_flush(o.put_to, loans_->window_), "MPI_Win_flush");
  return true;
}

void MpiOneSided::serve() {
  const std::lock_guard turn(mpi_turn());
  int none = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, loans_->world_, &none, MPI_STATUS_IGNORE);
}

}  // namespace hyperrun
