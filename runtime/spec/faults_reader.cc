#include "runtime/spec/faults_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "proto/faults.pb.h"
#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/spec/fault_fields.h"
#include "runtime/spec/job_fill.h"
#include "runtime/spec/job_message.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

// A study draws and walks each fault of each history; this many take some seconds.
constexpr double kMostFaults = 2e5;

void check_faults(const FaultModel& spec, const JobSource& source, std::vector<Error>& errors) {
  if (fault_rate(spec, 1) <= 0)
    errors.push_back(Error(Code::kMissingField, "the file says of nothing how often it fails")
                         .at(source.place("device"))
                         .legal("one or more of device, host, switch, software")
                         .fix("add device { mtbf: \"80000 h\" }, or another one"));
  std::int32_t most = 1;
  for (const std::int32_t devices : spec.scales) most = std::max(most, devices);
  const double faults = fault_rate(spec, most + spares_of(spec, most)) * spec.horizon;
  if (faults > kMostFaults)
    errors.push_back(
        Error(Code::kBadValue, fmt::format("{:.0f} faults within the horizon are too many", faults))
            .at(source.place("horizon"))
            .legal(fmt::format("as long as there are {:.0f}", kMostFaults))
            .fix("shorten it, or correct the mean times between failures"));
}

}  // namespace

FaultModel parse_faults(std::string_view text, const std::string& path) {
  JobSource source;
  source.path = path;
  proto::Faults message;
  throw_if_any(parse_text(text, message, source));
  FaultModel spec;
  spec.name = std::filesystem::path(path).stem();
  std::vector<Error> errors;
  JobFiller filler(message, "", source, errors);
  fields(filler, spec);
  throw_if_any(std::move(errors));
  check_faults(spec, source, errors);
  throw_if_any(std::move(errors));
  return spec;
}

bool is_built_in_faults(std::string_view name) {
  return std::ranges::any_of(built_in_faults(), [&](const BuiltInText& t) { return t.name == name; });
}

FaultModel load_faults(const std::string& wanted) {
  std::vector<std::string> names;
  for (const BuiltInText& t : built_in_faults()) {
    if (t.name == wanted) return parse_faults(t.text, std::string(t.name) + ".textproto");
    names.emplace_back(t.name);
  }
  if (std::error_code ignored; !std::filesystem::is_regular_file(wanted, ignored))
    throw Error(Code::kMissingFile, "there is no file of faults \"" + wanted + "\"")
        .at("--faults")
        .legal(joined(names) + ", or the path of such a file")
        .fix("choose one that is built in, or correct the path");
  return parse_faults(read_job_file(wanted), wanted);
}

}  // namespace hyperrun
