// This host, and handles of processes on it.
#pragma once

#include <sys/socket.h>

#include <string>

namespace hyperrun::process {

std::string host_name();

// An id that is equal for two processes exactly if a pid means the same process to both. It is made of the
// kernel's boot and the pid namespace. The host's name would not do: containers on one machine may share it.
std::string machine_id();

// The launcher's id of the MPI job that this process belongs to, or empty.
std::string mpi_job_id();

// A handle of a process. Killing through it never hits another process that was given the pid later.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  explicit ProcessHandle(int pid);  // empty for a process that is gone, or for ourselves
  ~ProcessHandle();
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;

  void kill() const;  // sends SIGKILL; does nothing if the process has ended

 private:
  int fd_ = -1;
};

// Returns "127.0.0.1:port" if `loopback`, else "address:port" of each interface that is up, comma-separated:
// IPv4 first, then IPv6 as "[address]:port" without link-local addresses.
std::string addresses(int port, bool loopback);

// Returns an interface's address as text, IPv6 in brackets; empty if other hosts cannot use it. An IPv6
// link-local address means something only together with an interface, whose name is each host's own.
std::string usable_address(const sockaddr& address);

}  // namespace hyperrun::process
