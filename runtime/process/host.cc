#include "runtime/process/host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/joined.h"
#include "runtime/process/pidfd.h"

namespace hyperrun::process {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) boot = host_name();
  std::array<char, 64> name_space{};
  if (readlink("/proc/self/ns/pid", name_space.data(), name_space.size() - 1) < 0) name_space[0] = '\0';
  return boot + "/" + name_space.data();
}

std::string mpi_job_id() {
  for (const char* name : {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"})
    if (const char* value = std::getenv(name)) return value;
  return "";
}

ProcessHandle::ProcessHandle(int pid) {
  if (pid > 1 && pid != getpid()) fd_ = pidfd_open(pid, 0);
}
ProcessHandle::~ProcessHandle() {
  if (fd_ >= 0) close(fd_);
}
ProcessHandle::ProcessHandle(ProcessHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
ProcessHandle& ProcessHandle::operator=(ProcessHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void ProcessHandle::kill() const {
  if (fd_ >= 0) pidfd_send_signal(fd_, SIGKILL, nullptr, 0);
}

std::string usable_address(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(), text.size());
    return text.data();
  }
  if (address.sa_family != AF_INET6) return "";
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_LINKLOCAL(&ip)) return "";
  inet_ntop(AF_INET6, &ip, text.data(), text.size());
  return "[" + std::string(text.data()) + "]";
}

std::string addresses(int port, bool loopback) {
  const std::string suffix = ":" + std::to_string(port);
  const std::string local = "127.0.0.1" + suffix;
  ifaddrs* list = nullptr;
  if (loopback || getifaddrs(&list) != 0) return local;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<std::string> all;
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != family) continue;
      if ((i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
      if (const std::string one = usable_address(*i->ifa_addr); !one.empty()) all.push_back(one + suffix);
    }
  return all.empty() ? local : joined(all, ",");
}

}  // namespace hyperrun::process
