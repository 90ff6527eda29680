#include "runtime/media/prepare.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/split.h"
#include "runtime/media/emoji.h"
#include "runtime/media/file.h"
#include "runtime/media/image.h"
#include "runtime/media/log_mel.h"
#include "runtime/media/manifest.h"
#include "runtime/media/resample.h"
#include "runtime/media/sound.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

constexpr const char* kManifest = "manifest.jsonl";

struct SpokenSource {
  MediaSample sample;
  fs::path wav;
};

MediaSplit split_of(const std::string& word, const std::string& id, const std::string& place) {
  if (word == "by-id") return held_back(id) ? MediaSplit::kHeldBack : MediaSplit::kTrain;
  for (const MediaSplit s : {MediaSplit::kTrain, MediaSplit::kHeldBack})
    if (word == name(s)) return s;
  throw Error(Code::kBadValue, "the split is \"" + word + "\"")
      .at(place)
      .legal("train, held-back, by-id")
      .fix("correct the line");
}

SpokenSource source_of(std::string_view line, const std::string& place) {
  const std::vector<std::string_view> parts = split(line, '\t');
  const std::vector<std::string> field(parts.begin(), parts.end());
  if (field.size() != 5 || std::ranges::any_of(field, &std::string::empty))
    throw Error(Code::kBadValue, "the line has not five fields")
        .at(place)
        .legal("id, text, category, split and path, with tabs between them")
        .fix("correct the line");
  if (field[0].find('/') != std::string::npos || field[0][0] == '.')
    throw Error(Code::kBadValue, "the id \"" + field[0] + "\" cannot be the name of a file")
        .at(place)
        .legal("text without /, that begins with no point")
        .fix("choose another id");
  MediaSample s{field[0], field[1], {}, {field[0] + ".wav", ""}, field[2], MediaSplit::kTrain};
  s.split = split_of(field[3], s.id, place);
  return {std::move(s), field[4]};
}

std::vector<SpokenSource> sources_of(const fs::path& list) {
  std::vector<SpokenSource> sources;
  std::size_t number = 0;
  const std::string content = read_media_file(list);
  for (const std::string_view line : split(content, '\n'))
    if (++number; !line.empty())
      sources.push_back(source_of(line, fmt::format("{}:{}", list.string(), number)));
  if (sources.empty())
    throw Error(Code::kBadCorpus, "the list is empty").at(list.string()).fix("list sounds");
  return sources;
}

// The absolute form of a path, so that two paths can be compared.
fs::path whole(const fs::path& path) { return fs::absolute(path).lexically_normal(); }

// Removes what an earlier run left, because it would belong to another manifest.
void start_anew(const fs::path& out) {
  std::error_code error;
  fs::remove(out / kManifest, error);
}

}  // namespace

void prepare_emoji(const fs::path& package, const fs::path& out, const PrepareProgress& progress) {
  const fs::path list = package / "emoji.json";
  std::vector<MediaSample> samples = emoji_samples(read_media_file(list), list.string());
  start_anew(out);
  std::size_t done = 0;
  for (MediaSample& s : samples) {
    const fs::path source = package / "img/google/64" / s.image.path;
    const std::string content = read_media_file(source);
    decode_png(content, source.string());
    s.image.xxh3 = xxh3(content);
    write_media_file(out / s.image.path, content);
    progress(++done, samples.size());
  }
  write_manifest(out / kManifest, samples);
}

void prepare_speech(const fs::path& list, const fs::path& out, const PrepareProgress& progress) {
  std::vector<SpokenSource> sources = sources_of(list);
  start_anew(out);
  std::vector<MediaSample> samples;
  for (SpokenSource& source : sources) {
    const Sound sound = decode_wav(read_media_file(source.wav), source.wav.string());
    const std::string content = encode_wav(resample(sound, kMelRate));
    source.sample.audio.xxh3 = xxh3(content);
    write_media_file(out / source.sample.audio.path, content);
    samples.push_back(std::move(source.sample));
    progress(samples.size(), sources.size());
  }
  write_manifest(out / kManifest, samples);
}

void join_manifests(const std::vector<fs::path>& parts, const fs::path& out) {
  std::string content;
  for (const fs::path& part : parts) {
    const MediaManifest manifest = read_manifest(part);
    for (MediaSample s : manifest.samples) {
      for (MediaFile* file : {&s.image, &s.audio})
        if (!file->path.empty())
          file->path =
              whole(manifest.folder / file->path).lexically_relative(whole(out).parent_path()).string();
      content += manifest_line(s) + '\n';
    }
  }
  parse_manifest(content, out.string());  // refuses what is no manifest any more
  write_media_file(out, content);
}

}  // namespace hyperrun
