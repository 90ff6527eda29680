// Memory that ranks lend each other across hosts: an MPI window over all ranks, with passive targets.
#pragma once

#include <mpi.h>

#include <array>

#include "memory/one_sided.h"
#include "memory/shared_window.h"

namespace hyperrun {

class MpiOneSided : public OneSidedPort {
 public:
  // Collective over the world. This rank lends `segment`, which outlives the port. Throws kMpi if MPI cannot
  // make such a window.
  MpiOneSided(const MpiHosts& hosts, Arena& segment);
  ~MpiOneSided() override;  // collective, unless an error unwinds
  MpiOneSided(const MpiOneSided&) = delete;
  MpiOneSided& operator=(const MpiOneSided&) = delete;

  void get(int lane, std::byte* into, Bytes bytes, int rank, Bytes offset) override;
  void put(int lane, const std::byte* from, Bytes bytes, int rank, Bytes offset) override;
  bool test(int lane) override;
  void serve() override;

 private:
  static constexpr int kNoPut = -1;
  struct Operation {
    MPI_Request request = MPI_REQUEST_NULL;
    int put_to = kNoPut;
  };

  MPI_Comm world_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::array<Operation, kLanes> lanes_;
};

}  // namespace hyperrun
