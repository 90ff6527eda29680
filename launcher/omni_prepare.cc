// omni_prepare: the part of tools/omni_data that reads and writes samples. All errors end here, as in
// main.cc.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file_size_limit.h"
#include "runtime/media/load.h"
#include "runtime/media/manifest.h"
#include "runtime/media/prepare.h"

namespace hyperrun {
namespace {

constexpr const char* kUsage =
    R"(Makes and checks folders of samples for omni-modal jobs; tools/omni_data calls it.

  omni_prepare emoji PACKAGE FOLDER    the pictures of an unpacked emoji-datasource-google
  omni_prepare speech LIST FOLDER      sounds of a list (id, text, category, split, path; tabs between), at 16 kHz
  omni_prepare join OUT MANIFEST...    one manifest of several that lie below its folder
  omni_prepare check MANIFEST          reads each file, compares its hash, prints what there is
)";

void show(std::size_t done, std::size_t all) {
  if (::isatty(STDERR_FILENO) != 0 && (done % 16 == 0 || done == all))
    std::fprintf(stderr, "\r   %zu of %zu%s", done, all, done == all ? "\n" : "");
}

void check(const std::string& path) {
  const MediaManifest manifest = read_manifest(path);
  check_files(manifest);
  MediaUnits all;
  for (const MediaUnits& u : measure_media(manifest, MediaShape{})) all += u;
  const std::size_t train = only(manifest, MediaSplit::kTrain).samples.size();
  std::printf("%s: %zu samples, %zu of them held back; %lld patches of 16 x 16 pixels, %.1f s of sound\n",
              path.c_str(), manifest.samples.size(), manifest.samples.size() - train,
              static_cast<long long>(all.patches), static_cast<double>(all.frames) / 100);
}

void run(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "--help") {
    std::fputs(kUsage, stdout);
  } else if (words.size() == 3 && words[0] == "emoji") {
    prepare_emoji(words[1], words[2], show);
  } else if (words.size() == 3 && words[0] == "speech") {
    prepare_speech(words[1], words[2], show);
  } else if (words.size() >= 3 && words[0] == "join") {
    join_manifests({words.begin() + 2, words.end()}, words[1]);
  } else if (words.size() == 2 && words[0] == "check") {
    check(words[1]);
  } else {
    throw Error(Code::kUsage, "not understood")
        .legal("emoji PACKAGE FOLDER, speech LIST FOLDER, join OUT MANIFEST..., check MANIFEST")
        .fix("omni_prepare --help says what each does");
  }
}

}  // namespace
}  // namespace hyperrun

int main(int argc, char** argv) {
  using hyperrun::ExitCode;
  hyperrun::survive_file_size_limit();
  try {
    hyperrun::run(std::vector<std::string>(argv + 1, argv + argc));
    return static_cast<int>(ExitCode::kOk);
  } catch (const hyperrun::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(hyperrun::exit_code(e.code()));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error[internal]: %s\n", e.what());
    return static_cast<int>(ExitCode::kInternal);
  }
}
