// JSON of what reports of several programs have in common. Included by .cc files only.
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

// The begin of the object that says what kind of report it is.
Json json_of(const ProgramsReport& report, const char* kind);
void read_into(ProgramsReport& report, const Json& json);  // throws Json::exception or kSyntax

// The report in a file, as `of` makes it of its JSON; none: it is of another kind. Throws kMissingFile, or
// kSyntax where it is no report.
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
