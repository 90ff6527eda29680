// A message port over MPI point to point; it never uses MPI's collectives. One thread owns it.
#pragma once

#include <mpi.h>

#include <vector>

#include "collectives/message_port.h"

namespace hyperrun {

class MpiPort : public MessagePort {
 public:
  explicit MpiPort(MPI_Comm world);  // duplicates the communicator, which is collective
  ~MpiPort() override;
  MpiPort(const MpiPort&) = delete;
  MpiPort& operator=(const MpiPort&) = delete;

  Ticket send(const std::byte* data, std::int64_t bytes, int to, int tag) override;
  Ticket receive(std::byte* data, std::int64_t bytes, int from, int tag) override;
  bool test(Ticket ticket) override;

 private:
  Ticket take();

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<MPI_Request> requests_;
  std::vector<Ticket> free_;
};

}  // namespace hyperrun
