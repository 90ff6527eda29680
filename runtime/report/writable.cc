#include "runtime/report/writable.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/report/file.h"

namespace hyperrun {

Error at_option(const std::string& option, const Error& e) {
  return Error(e.code(), e.cause())
      .at(option + " " + e.place())
      .fix("name a file in a folder that is there, has room and that you may write to");
}

void require_writable(const std::filesystem::path& out, const std::string& option) try {
  std::error_code unseen;  // of what is too long, or behind a folder that is closed: opening it says why
  const std::filesystem::file_status there = std::filesystem::status(out, unseen);
  if (is_directory(there)) throw Error(Code::kUnwritable, "is a folder").at(out.string());
  if (exists(there) && !is_regular_file(there))
    throw Error(Code::kUnwritable, "is no file, and one would take its place").at(out.string());
  if (unseen == std::errc::too_many_symbolic_link_levels)
    throw Error(Code::kUnwritable, "its links are too many, or lead to themselves").at(out.string());
  std::filesystem::path probe = out;
  probe += ".tmp" + std::to_string(getpid());
  OutputFile file(probe, O_WRONLY | O_CREAT | O_EXCL);
  unlink(probe.c_str());
} catch (const Error& e) {
  throw at_option(option, Error(e.code(), e.cause()).at(out.string()));  // not the probe's name
}

void require_writable_svg(const std::filesystem::path& out, const std::string& option) {
  if (!out.string().ends_with(".svg"))
    throw Error(Code::kUsage, "a picture is written as SVG, and this is no name of one")
        .at(option + " " + out.string())
        .legal("a name that ends in .svg")
        .fix("name it " + std::filesystem::path(out).replace_extension(".svg").string());
  require_writable(out, option);
}

}  // namespace hyperrun
