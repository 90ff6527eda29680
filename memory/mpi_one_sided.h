// Memory that devices lend each other across hosts: an MPI window over all processes, with passive targets.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/one_sided.h"
#include "memory/shared_window.h"

namespace hyperrun {

// The window of a process, which all its devices use.
class MpiLoans {
 public:
  // Collective over the world. `segments`: what each device of this process lends, of one window of their
  // host (make_shared_arenas); they outlive this object. Throws kMpi if MPI cannot make such a window.
  MpiLoans(const MpiHosts& hosts, std::span<Arena> segments);
  ~MpiLoans();  // collective, unless an error unwinds
  MpiLoans(const MpiLoans&) = delete;
  MpiLoans& operator=(const MpiLoans&) = delete;

 private:
  friend class MpiOneSided;

  MPI_Comm world_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<int> process_of_;  // by device
  std::vector<std::int64_t>
      begin_of_;  // by device: offset of its segment in its process's part of the window
};

// A device's port. Its calls may come from any thread.
class MpiOneSided : public OneSidedPort {
 public:
  explicit MpiOneSided(std::shared_ptr<MpiLoans> loans) : loans_(std::move(loans)) {}

  void get(int lane, std::byte* into, Bytes bytes, int device, Bytes offset) override;
  void put(int lane, const std::byte* from, Bytes bytes, int device, Bytes offset) override;
  bool test(int lane) override;
  void serve() override;

 private:
  static constexpr int kNoPut = -1;
  struct Operation {
    MPI_Request request = MPI_REQUEST_NULL;
    int put_to = kNoPut;  // process that the bytes go to
  };

  std::shared_ptr<MpiLoans> loans_;
  std::array<Operation, kLanes> lanes_;
};

}  // namespace hyperrun
