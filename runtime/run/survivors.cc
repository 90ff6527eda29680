#include "runtime/run/survivors.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/report/run_directory.h"

namespace hyperrun {
namespace {

// Limit of a host's answer. mpirun starts a daemon there by ssh, which takes a second on a busy host.
constexpr std::chrono::milliseconds kAnswer{4000};
constexpr std::int32_t kAll = std::numeric_limits<std::int32_t>::max();

std::vector<process::HostLine> lines_of(const Hosts& hosts) {
  if (!hosts.file.empty()) return process::read_hosts(hosts.file);
  return hosts.by_allocation() ? process::hosts_of(*hosts.allocation) : std::vector<process::HostLine>();
}

}  // namespace

Survivors::Survivors(Hosts hosts, std::filesystem::path file)
    : Survivors(hosts, std::move(file),
                [arguments = hosts.mpirun_args](const std::vector<process::HostLine>& lines) {
                  return process::reach_hosts(lines, arguments, kAnswer);
                }) {}

Survivors::Survivors(Hosts hosts, std::filesystem::path file, Ask ask)
    : all_(std::move(hosts)), left_(all_), file_(std::move(file)), ask_(std::move(ask)), devices_(kAll) {}

Survivors::~Survivors() {
  if (asked_.valid()) asked_.wait();
  std::error_code none;
  std::filesystem::remove(file_, none);
}

void Survivors::look(const std::vector<std::string>& host_of_device) {
  if (hosts_.empty()) {
    const std::vector<process::HostLine> all = lines_of(all_);
    if (all.size() < 2) return;
    for (const process::HostLine& line : all) hosts_.push_back({.line = line, .name = {}});
  }
  std::map<std::string, std::int32_t> devices;
  for (const std::string& host : host_of_device) ++devices[host];
  for (const auto& [host, count] : devices) devices_by_name_[host] = std::max(devices_by_name_[host], count);
  if (asked_.valid()) asked_.get();  // an answer from before the loss
  take(ask_(lines()));
}

void Survivors::look_beside() {
  if (std::ranges::all_of(hosts_, [](const Host& h) { return h.there || !h.trusted; })) return;
  if (asked_.valid()) {
    if (asked_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
    const std::vector<process::Reached> reached = asked_.get();
    // A host of the run that does not answer is the controller's to find; here only those that come count.
    bool more = false, fewer = false;
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const bool answers = !reached[h].name.empty();
      more = more || (answers && !hosts_[h].there && hosts_[h].trusted);
      fewer = fewer || (!answers && hosts_[h].there);
    }
    if (more && !fewer) return take(reached);
  }
  asked_ = std::async(std::launch::async, [ask = ask_, lines = lines()] { return ask(lines); });
}

void Survivors::distrust_returned() {
  for (Host& host : hosts_)
    if (host.returned) host.trusted = host.there = host.returned = false;
  choose_left();
}

void Survivors::take(const std::vector<process::Reached>& reached) {
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    Host& host = hosts_[h];
    const bool there = host.trusted && !reached[h].name.empty();
    host.returned = there && !host.there;
    host.there = there;
    if (there) host.name = reached[h].name;
  }
  choose_left();
}

// Counts the devices of the hosts that are there, and writes the file with these hosts alone.
void Survivors::choose_left() {
  left_ = all_;
  devices_ = kAll;
  if (std::ranges::all_of(hosts_, &Host::there)) return;
  devices_ = 0;
  std::vector<process::HostLine> there;
  for (const Host& host : hosts_)
    if (host.there) {
      there.push_back(host.line);
      devices_ += devices_of(host);
    }
  if (there.empty()) return;
  write_file_atomically(file_, process::text_of(there));
  left_.file = file_;
}

std::int32_t Survivors::devices_of(const Host& host) const {
  const auto known = devices_by_name_.find(host.name);
  return known != devices_by_name_.end() ? known->second : host.line.slots.value_or(1);
}

std::vector<process::HostLine> Survivors::lines() const {
  std::vector<process::HostLine> lines;
  for (const Host& host : hosts_) lines.push_back(host.line);
  return lines;
}

}  // namespace hyperrun
