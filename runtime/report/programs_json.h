// JSON of the common part of reports of several programs. Included by .cc files only.
#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/report/file.h"
#include "runtime/report/json.h"
#include "runtime/report/programs.h"

namespace hyperrun {

inline constexpr int kProgramsFormat = 1;

// The beginning of the object, with the kind of report.
Json json_of(const ProgramsReport& report, const char* kind);
void read_into(ProgramsReport& report, const Json& json);  // throws Json::exception or kSyntax

// Reads a file's report, which `of` makes of its JSON; nullopt: it is of another kind. Throws kMissingFile,
// or kSyntax if it is no report.
template <class Of>
auto read_report_of(const char* kind, const std::filesystem::path& path, Of of)
    -> std::optional<decltype(of(Json()))> {
  const Json json = Json::parse(read_whole_file(path), nullptr, false);
  if (!json.is_object() || !json.contains("kind") || json["kind"] != kind) return std::nullopt;
  try {
    return of(json);
  } catch (const std::exception& e) {
    throw Error(Code::kSyntax, std::string("is no report: ") + e.what())
        .at(path.string())
        .legal("a report.json as a run writes it")
        .fix("run the job again");
  }
}

}  // namespace hyperrun
