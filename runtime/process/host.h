// This host, and processes on it.
#pragma once

#include <string>

namespace hyperrun::control {

std::string host_name();

// Equal for two processes exactly when a pid means the same process to both: the kernel's boot and the
// pid namespace, not the host's name, which containers on one machine may share.
std::string machine_id();

// The launcher's id of the MPI job this process belongs to, or empty.
std::string mpi_job_id();

// A process that may be killed without hitting another one that was given its pid later.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  explicit ProcessHandle(int pid);  // no handle for a process that is gone, or for ourselves
  ~ProcessHandle();
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;

  void kill() const;  // SIGKILL; nothing happens when it has ended

 private:
  int fd_ = -1;
};

// "127.0.0.1:port" or, not loopback, "address:port" of each interface that is up, comma-separated.
std::string addresses(int port, bool loopback);

}  // namespace hyperrun::control
