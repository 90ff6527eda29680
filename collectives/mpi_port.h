// Message ports over MPI point to point; they never use MPI's collectives.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "collectives/message_port.h"
#include "memory/shared_window.h"

namespace hyperrun {

// The communicator of a process's ports, and the processes that its peers are in.
class MpiMessages {
 public:
  explicit MpiMessages(const MpiHosts& hosts);  // duplicates the communicator, which is collective
  ~MpiMessages();
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

 private:
  friend class MpiPort;

  // The tag on the wire: it tells the devices of two processes apart.
  int tag(int from, int to, int tag) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<int> process_of_, place_of_;  // by device: its process, and its place in there
  int most_ = 1;                            // the most devices that a process hosts
};

class MpiPort : public MessagePort {
 public:
  MpiPort(std::shared_ptr<MpiMessages> messages, int device);

  Ticket send(const std::byte* data, std::int64_t bytes, int to, int tag) override;
  Ticket receive(std::byte* data, std::int64_t bytes, int from, int tag) override;
  bool test(Ticket ticket) override;

 private:
  Ticket take();

  std::shared_ptr<MpiMessages> messages_;
  int device_;
  std::vector<MPI_Request> requests_;
  std::vector<Ticket> free_;
};

}  // namespace hyperrun
