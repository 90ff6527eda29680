#include "runtime/spec/software_reader.h"

#include <algorithm>
#include <filesystem>

#include "proto/supernode.pb.h"
#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/spec/figure_range.h"
#include "runtime/spec/job_fill.h"
#include "runtime/spec/job_message.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/profile_fields.h"
#include "runtime/spec/profile_figures.h"

namespace hyperrun {
namespace {

// Figures of the software of a machine have paths that begin with this.
constexpr std::string_view kBlock = "software.";

void check_ranges(const Software& software, const JobSource& source, std::vector<Error>& errors) {
  Machine machine;
  machine.software = software;
  for (FigurePath at : figures_of(machine)) {
    if (!at.path.starts_with(kBlock)) continue;
    at.path.erase(0, kBlock.size());
    check_range(at, at.in(machine), source, errors);
  }
}

}  // namespace

bool is_built_in_software(std::string_view name) {
  const std::vector<BuiltInText> all = built_in_software();
  return std::ranges::find(all, name, &BuiltInText::name) != all.end();
}

Software parse_software(std::string_view text, const std::string& path) {
  JobSource source;
  source.path = path;
  proto::SoftwareProfile message;
  throw_if_any(parse_text(text, message, source));
  Software software;
  std::vector<Error> errors;
  JobFiller filler(message, "", source, errors);
  fields(filler, software);
  throw_if_any(std::move(errors));
  check_ranges(software, source, errors);
  throw_if_any(std::move(errors));
  return software;
}

Software load_software(const std::string& wanted, const std::string& job_path) {
  std::vector<std::string> names;
  for (const BuiltInText& t : built_in_software()) {
    if (t.name == wanted) return parse_software(t.text, std::string(t.name) + ".textproto");
    names.emplace_back(t.name);
  }
  const std::string path = resolve_input(wanted, job_path);
  if (std::error_code ignored; !std::filesystem::is_regular_file(path, ignored))
    throw Error(Code::kMissingFile, "there is no software profile \"" + wanted + "\"")
        .at("supernode.software")
        .legal(joined(names) + ", or the path of a software profile")
        .fix("choose one that is built in, or correct the path");
  return parse_software(read_job_file(path), path);
}

}  // namespace hyperrun
