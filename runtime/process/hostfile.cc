#include "runtime/process/hostfile.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

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

// mpirun allows blanks around the equals sign.
std::string without_blanks_at_equals(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '=') {
      text += line[i];
      continue;
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
    text += '=';
    while (i + 1 < line.size() && (line[i + 1] == ' ' || line[i + 1] == '\t')) ++i;
  }
  return text;
}

}  // namespace

std::vector<HostLine> parse_hosts(std::string_view text, const std::string& place) {
  std::vector<HostLine> hosts;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(without_blanks_at_equals(line.substr(0, line.find('#'))));
    HostLine host{number, "", {}};
    if (!(words >> host.host)) continue;
    constexpr std::string_view kSlots = "slots=";
    for (std::string word; words >> word;)
      if (word.starts_with(kSlots)) host.slots = slots(word.substr(kSlots.size()), at_line(place, number));
    hosts.push_back(std::move(host));
  }
  return hosts;
}

std::string default_hostfile() {
  const char* file = std::getenv("OMPI_MCA_orte_default_hostfile");
  return file != nullptr ? file : "";
}

namespace {

// The lines of a file that names a host at least.
std::vector<HostLine> read_hosts(const std::string& hostfile) {
  std::ifstream file(hostfile);
  std::error_code unknown;
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.is_open() || std::filesystem::is_directory(hostfile, unknown))
    throw Error(Code::kMissingFile, "cannot read " + hostfile).at("--hostfile").legal(kForm);
  std::vector<HostLine> hosts = parse_hosts(text.str(), hostfile);
  if (hosts.empty())
    throw Error(Code::kTooFewRanks, "no line names a host").at(hostfile).legal(kForm).fix("add hosts");
  return hosts;
}

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
  const std::vector<HostLine> lines = read_hosts(hostfile);
  std::set<std::string> hosts;
  for (const HostLine& line : lines) hosts.insert(line.host);
  return {static_cast<std::int32_t>(hosts.size()), sum_of_slots(lines)};
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
