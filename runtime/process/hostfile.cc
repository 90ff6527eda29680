#include "runtime/process/hostfile.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun::process {
namespace {

constexpr const char* kForm = "a host a line: \"NAME slots=RANKS\", # for a comment";

std::string at_line(const std::string& place, int line) { return fmt::format("{}:{}", place, line); }

std::int32_t slots(std::string_view text, const std::string& place) {
  std::int32_t n = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (failed == std::errc() && end == text.data() + text.size() && n >= 1) return n;
  throw Error(Code::kMpi, "slots cannot be \"" + std::string(text) + "\"")
      .at(place)
      .legal("slots=1 and more")
      .fix("say how many ranks the host takes");
}

// The blanks that separate words of a line, among them the return of Windows.
bool is_blank(char c) { return std::string_view(" \t\r\v\f").find(c) != std::string_view::npos; }

// mpirun allows blanks around the equals sign.
std::string without_blanks_at_equals(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '=') {
      text += line[i];
      continue;
    }
    while (!text.empty() && is_blank(text.back())) text.pop_back();
    text += '=';
    while (i + 1 < line.size() && is_blank(line[i + 1])) ++i;
  }
  return text;
}

bool is_ip6(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  host = host.substr(0, host.find('%'));
  in6_addr address{};
  return inet_pton(AF_INET6, std::string(host).c_str(), &address) == 1;
}

void refuse_ip6(const HostLine& host, const std::string& place) {
  if (!is_ip6(host.host)) return;
  throw Error(Code::kMpi, host.host + " is an IPv6 address, which Open MPI takes for no host")
      .at(at_line(place, host.line))
      .legal("a host's name, or an IPv4 address")
      .fix("give the address a name in /etc/hosts, and write the name");
}

// The first word of "slots=8" is no name.
void refuse_equals(const HostLine& host, const std::string& place) {
  if (host.host.find('=') == std::string::npos) return;
  throw Error(Code::kMpi, "\"" + host.host + "\" is no name of a host")
      .at(at_line(place, host.line))
      .legal(kForm)
      .fix("write the host's name before its slots");
}

// A line without a host has none in the result, either.
HostLine parse_line(const std::string& line, int number, const std::string& place) {
  constexpr std::string_view kSlots = "slots=";
  std::istringstream words(without_blanks_at_equals(line.substr(0, line.find('#'))));
  HostLine host{number, "", {}};
  words >> host.host;
  for (std::string word; words >> word;)
    if (word.starts_with(kSlots))
      host.slots = slots(word.substr(kSlots.size()), at_line(place, number));
    else
      host.others += " " + word;
  refuse_ip6(host, place);
  refuse_equals(host, place);
  return host;
}

std::string content_of(const std::string& hostfile) {
  std::ifstream file(hostfile);
  std::error_code unknown;
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.is_open() || std::filesystem::is_directory(hostfile, unknown))
    throw Error(Code::kMissingFile, "cannot read " + hostfile).at("--hostfile").legal(kForm);
  return text.str();
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.substr(text.starts_with(kMark) ? kMark.size() : 0);
}

// The lines of a text that name a host, one for each.
std::vector<HostLine> host_lines(std::string_view text, const std::string& place) {
  std::vector<HostLine> hosts;
  std::istringstream lines{std::string(without_mark(text))};
  int number = 0;
  for (std::string line; std::getline(lines, line);)
    if (HostLine host = parse_line(line, ++number, place); !host.host.empty())
      hosts.push_back(std::move(host));
  return hosts;
}

// The slots of a host that stands in a further line.
std::int32_t sum_of_slots(const HostLine& before, const HostLine& line, const std::string& place) {
  std::int32_t sum = 0;
  if (!__builtin_add_overflow(before.slots.value_or(1), line.slots.value_or(1), &sum)) return sum;
  throw Error(Code::kMpi, "the slots of " + line.host + " add up to more than a host can have")
      .at(at_line(place, line.line))
      .legal("2147483647 slots of a host together")
      .fix("say how many ranks the host takes");
}

std::vector<HostLine> joined_by_host(const std::vector<HostLine>& lines, const std::string& place) {
  std::vector<HostLine> hosts;
  for (const HostLine& line : lines) {
    const auto before = std::ranges::find(hosts, line.host, &HostLine::host);
    if (before == hosts.end())
      hosts.push_back(line);
    else
      before->slots = sum_of_slots(*before, line, place);
  }
  return hosts;
}

}  // namespace

std::string text_of(const std::vector<HostLine>& hosts) {
  std::string text;
  for (const HostLine& host : hosts)
    text += host.host + (host.slots ? fmt::format(" slots={}", *host.slots) : "") + host.others + "\n";
  return text;
}

std::vector<HostLine> parse_hosts(std::string_view text, const std::string& place) {
  return joined_by_host(host_lines(text, place), place);
}

HostfileForMpirun::HostfileForMpirun(const std::string& hostfile) : path_(hostfile) {
  if (hostfile.empty()) return;
  const std::string text = content_of(hostfile);
  const std::vector<HostLine> lines = host_lines(text, hostfile), hosts = joined_by_host(lines, hostfile);
  const bool of_windows = text.find('\r') != std::string::npos || without_mark(text).size() < text.size();
  if (!of_windows && lines == hosts) return;
  const std::string form = text_of(hosts);
  fd_ = memfd_create("hosts", MFD_CLOEXEC);
  if (fd_ < 0 || write(fd_, form.data(), form.size()) != std::ssize(form))
    throw Error(Code::kMpi, std::string("no memory for a file: ") + std::strerror(errno)).at(hostfile);
  path_ = fmt::format("/proc/{}/fd/{}", getpid(), fd_);
}

HostfileForMpirun::~HostfileForMpirun() {
  if (fd_ >= 0) close(fd_);
}

std::string default_hostfile() {
  const char* file = std::getenv("OMPI_MCA_orte_default_hostfile");
  return file != nullptr ? file : "";
}

std::vector<HostLine> read_hosts(const std::string& hostfile) {
  std::vector<HostLine> hosts = parse_hosts(content_of(hostfile), hostfile);
  if (hosts.empty())
    throw Error(Code::kTooFewRanks, "no line names a host").at(hostfile).legal(kForm).fix("add hosts");
  return hosts;
}

namespace {

std::optional<std::int32_t> sum_of_slots(const std::vector<HostLine>& hosts) {
  std::int32_t sum = 0;
  for (const HostLine& host : hosts) {
    if (!host.slots) return std::nullopt;
    sum += *host.slots;
  }
  return sum;
}

}  // namespace

HostSlots slots_of(const std::string& hostfile) {
  const std::vector<HostLine> hosts = read_hosts(hostfile);
  return {static_cast<std::int32_t>(hosts.size()), sum_of_slots(hosts)};
}

void require_slots(const std::string& hostfile, std::int32_t ranks) {
  const std::vector<HostLine> hosts = read_hosts(hostfile);
  const std::optional<std::int32_t> sum = sum_of_slots(hosts);
  if (!sum || *sum >= ranks) return;
  const HostLine& last = hosts.back();
  throw Error(Code::kTooFewRanks, fmt::format("the hosts have {}{}, the run has {} ranks", *sum,
                                              *sum == 1 ? " slot" : " slots", ranks))
      .at(at_line(hostfile, last.line))
      .legal(fmt::format("slots that add up to {} or more", ranks))
      .fix(
          fmt::format("raise slots ({} slots={}), add hosts, or let a rank host several devices (--ranks {})",
                      last.host, *last.slots + ranks - *sum, *sum));
}

}  // namespace hyperrun::process
