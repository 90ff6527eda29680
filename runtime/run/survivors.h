// The hosts and devices on which a run can start again after a loss.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "runtime/process/reach.h"
#include "runtime/run/drive.h"

namespace hyperrun {

class Survivors {
 public:
  // `file`: where a host file without the hosts that are gone can be written.
  Survivors(Hosts hosts, std::filesystem::path file)
      : all_(std::move(hosts)), left_(all_), file_(std::move(file)) {}
  ~Survivors();
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  // The hosts for the next start.
  const Hosts& hosts() const { return left_; }

  // Asks all hosts of the host file, or of Slurm's allocation, whether they are there, for some seconds at
  // most, and leaves out those that are not. `host_of_device` has the host of each device of the run that was
  // lost. Returns how many of its devices were on hosts that are gone.
  std::int32_t look(const std::vector<std::string>& host_of_device);

  // Whether a host that was gone is there again. Never waits: it asks beside the run, and tells what it has
  // heard. After true, hosts() has all that are there.
  bool more();

 private:
  void take(const std::vector<process::Reached>& reached);

  Hosts all_, left_;
  std::filesystem::path file_;
  std::size_t gone_ = 0;  // hosts that do not answer
  std::future<std::vector<process::Reached>> asked_;
};

}  // namespace hyperrun
