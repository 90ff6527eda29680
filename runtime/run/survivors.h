// The hosts and devices on which a run can start again after a loss.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "runtime/process/reach.h"
#include "runtime/run/drive.h"

namespace hyperrun {

class Survivors {
 public:
  // Asks hosts; process::reach_hosts(), or another one in tests.
  using Ask = std::function<std::vector<process::Reached>(const std::vector<process::HostLine>&)>;

  // `file`: where a host file without the hosts that are gone can be written.
  Survivors(Hosts hosts, std::filesystem::path file);
  Survivors(Hosts hosts, std::filesystem::path file, Ask ask);
  ~Survivors();
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  // The hosts for the next start.
  const Hosts& hosts() const { return left_; }
  // The devices that these hosts have room for: as many as each of them has had, or its slots if it had none.
  // A great number while nothing is known to be gone.
  std::int32_t devices() const { return devices_; }

  // Asks all hosts of the host file, or of Slurm's allocation, whether they are there, for some seconds at
  // most, and leaves out those that are not. `host_of_device` has the host of each device of the run that was
  // lost.
  void look(const std::vector<std::string>& host_of_device);

  // Looks, while hosts are gone, whether there are more devices again. Never waits: it asks beside the run,
  // and tells what it has heard.
  void look_beside();

  // The last start failed before a device was there: hosts that had come back for it are not taken again.
  void distrust_returned();

 private:
  struct Host {
    process::HostLine line;
    bool there = true, returned = false, trusted = true;
    std::string name;  // as the host calls itself; empty until it has answered once
  };

  void take(const std::vector<process::Reached>& reached);
  void choose_left();
  std::int32_t devices_of(const Host& host) const;
  std::vector<process::HostLine> lines() const;

  Hosts all_, left_;
  std::filesystem::path file_;
  Ask ask_;
  std::vector<Host> hosts_;  // empty: which hosts there are is not known, or it is this one alone
  std::map<std::string, std::int32_t> devices_by_name_;  // the most that a host has had
  std::int32_t devices_;
  std::future<std::vector<process::Reached>> asked_;
};

}  // namespace hyperrun
