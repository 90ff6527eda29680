#include "runtime/spec/profile_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "proto/supernode.pb.h"
#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/spec/figure_range.h"
#include "runtime/spec/job_fill.h"
#include "runtime/spec/job_message.h"
#include "runtime/spec/job_quantity.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/kernel_table_reader.h"
#include "runtime/spec/profile_fields.h"
#include "runtime/spec/profile_figures.h"

namespace hyperrun {
namespace {

std::string names_of_all() {
  std::string names;
  for (const BuiltInProfile& p : built_in_profiles()) names += std::string(p.name) + ", ";
  return names + "or the path of a profile";
}

// Checks a name, which must fit into tables and lines of a terminal.
void check_name(const std::string& name, const std::string& field, const JobSource& source,
                std::vector<Error>& errors) {
  constexpr std::size_t kLongest = 64;
  if (name.size() <= kLongest && std::ranges::none_of(name, [](unsigned char c) { return std::iscntrl(c); }))
    return;
  errors.push_back(Error(Code::kBadValue, "this is no name to be shown in a line")
                       .at(source.place(field))
                       .legal(fmt::format("1 to {} bytes without control characters", kLongest))
                       .fix("give another one"));
}

void check_names(const Machine& m, const JobSource& source, std::vector<Error>& errors) {
  check_name(m.name, "name", source, errors);
  std::set<std::string> seen;
  for (std::size_t l = 0; l < m.levels.size(); ++l) {
    const std::string field = fmt::format("levels[{}].name", l);
    check_name(m.levels[l].name, field, source, errors);
    if (!seen.insert(m.levels[l].name).second)
      errors.push_back(Error(Code::kBadValue, "two levels are called \"" + m.levels[l].name + "\"")
                           .at(source.place(field))
                           .legal("names of their own")
                           .fix("give another one"));
  }
}

void check_ranges(const Machine& m, const JobSource& source, std::vector<Error>& errors) {
  Machine machine = m;
  for (const FigurePath& at : figures_of(machine)) check_range(at, at.in(machine), source, errors);
}

void check_reserve(const Machine& m, const JobSource& source, std::vector<Error>& errors) {
  if (std::max(m.reserve.value, m.reserve.high) < m.hbm.value) return;
  errors.push_back(Error(Code::kBadValue, "the \"reserve\" leaves nothing of the HBM to a job")
                       .at(source.place("device.reserve"))
                       .legal("less than " + format_quantity(QuantityKind::kBytes, m.hbm.value))
                       .fix("give what the machine's own software takes of a device's HBM"));
}

std::vector<Error> check(const Machine& m, const JobSource& source) {
  std::vector<Error> errors;
  check_names(m, source, errors);
  check_ranges(m, source, errors);
  check_reserve(m, source, errors);
  if (m.levels.empty())
    errors.push_back(Error(Code::kMissingField, "the profile has no \"levels\"")
                         .at(source.place("levels"))
                         .legal("levels { ... }, one or more")
                         .fix("add one: how devices reach each other"));
  std::int64_t below = 1;
  for (std::size_t l = 0; l + 1 < m.levels.size(); ++l) {
    const std::string field = fmt::format("levels[{}]", l);
    const std::int64_t devices = m.levels[l].devices;
    if (!source.has(field + ".devices"))
      errors.push_back(Error(Code::kMissingField, "level \"" + m.levels[l].name + "\" has no \"devices\"")
                           .at(source.place(field))
                           .legal(fmt::format("a multiple of {}, above it", below))
                           .fix("add devices: ...; only the last level holds any number of them"));
    else if (devices <= below || devices % below != 0)
      errors.push_back(Error(Code::kBadValue, fmt::format("a unit of level \"{}\" cannot have {} devices",
                                                          m.levels[l].name, devices))
                           .at(source.place(field + ".devices"))
                           .legal(fmt::format("a multiple of {}, above it", below))
                           .fix("units of a level are made of whole units of the level below"));
    below = devices;
  }
  if (const std::string last = fmt::format("levels[{}].devices", m.levels.size() - 1);
      !m.levels.empty() && source.has(last))
    errors.push_back(Error(Code::kBadValue, "the last level holds any number of devices")
                         .at(source.place(last))
                         .legal("devices in the levels inside of it")
                         .fix("leave it out, or add a level outside of this one"));
  if (!m.levels.empty() && m.levels.back().mesh)
    errors.push_back(Error(Code::kBadValue, "the last level has no number of devices to be a mesh of")
                         .at(source.place(fmt::format("levels[{}].mesh", m.levels.size() - 1)))
                         .legal("mesh in a level inside of it")
                         .fix("add a level outside of it"));
  return errors;
}

// Reads the table of kernels that the profile names: a built-in one, or a file beside the profile.
void read_kernel_table(Machine& m, const JobSource& source) {
  if (m.kernels.empty()) return;
  const std::string wanted = m.kernels.file(), from = m.kernels.source();
  for (const BuiltInText& t : built_in_kernels())
    if (t.name == wanted) {
      m.kernels = KernelTable(read_kernels(t.text, wanted), wanted, from);
      return;
    }
  const std::string path = resolve_input(wanted, source.path);
  if (std::error_code ignored; !std::filesystem::is_regular_file(path, ignored)) {
    std::vector<std::string> names;
    for (const BuiltInText& t : built_in_kernels()) names.emplace_back(t.name);
    throw JobError({Error(Code::kMissingFile, "there is no table of kernels \"" + wanted + "\"")
                        .at(source.place("kernels.file"))
                        .legal(joined(names) + ", or the path of a table")
                        .fix("choose one that is built in, or correct the path")});
  }
  m.kernels = KernelTable(read_kernels(read_job_file(path), path), path, from);
}

}  // namespace

bool is_built_in(std::string_view name) {
  const std::vector<BuiltInProfile> all = built_in_profiles();
  return std::ranges::find(all, name, &BuiltInProfile::name) != all.end();
}

Machine parse_profile(std::string_view text, const std::string& path) {
  JobSource source;
  source.path = path;
  proto::Profile message;
  throw_if_any(parse_text(text, message, source));
  Machine machine;
  std::vector<Error> errors;
  JobFiller filler(message, "", source, errors);
  fields(filler, machine);
  throw_if_any(std::move(errors));
  Scores& s = machine.scores;
  if (s.forward_apart.value == 0) s.forward_apart = s.forward;
  if (s.backward_apart.value == 0) s.backward_apart = s.backward;
  if (!source.has("device.scores.kernels_apart")) s.kernels_apart = s.kernels;
  throw_if_any(check(machine, source));
  read_kernel_table(machine, source);
  return machine;
}

Machine load_profile(const std::string& wanted, const std::string& job_path) {
  for (const BuiltInProfile& p : built_in_profiles())
    if (p.name == wanted) return parse_profile(p.text, std::string(p.name) + ".textproto");
  const std::string path = resolve_input(wanted, job_path);
  if (std::error_code ignored; !std::filesystem::is_regular_file(path, ignored))
    throw Error(Code::kMissingFile, "there is no profile \"" + wanted + "\"")
        .at("supernode.profile")
        .legal(names_of_all())
        .fix("choose one that is built in, or correct the path");
  return parse_profile(read_job_file(path), path);
}

}  // namespace hyperrun
