#include "runtime/media/manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/base/utf8.h"
#include "runtime/media/file.h"
#include "runtime/model/checkpoint/text_lines.h"
#include "runtime/report/json.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostText = 1 << 20, kMostName = 4096;  // bytes
constexpr const char* kFields = "id, text, image, image_xxh3, audio, audio_xxh3, category, split";
constexpr std::array<std::string_view, 8> kFieldNames = {"id",    "text",       "image",    "image_xxh3",
                                                         "audio", "audio_xxh3", "category", "split"};
constexpr const char* kForm = R"({"id": "...", "text": "...", "category": "...", "split": "train"})";

// Parses a line, and refuses a field that occurs twice; the library would silently keep the last.
Json parse_line(std::string_view line, const std::string& place) {
  std::set<std::string> seen;
  std::string twice;
  const auto look = [&](int depth, nlohmann::detail::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  Json json;
  try {
    json = Json::parse(line, look);
  } catch (const Json::exception&) {
    throw Error(Code::kSyntax, "no JSON").at(place).legal(kForm).fix("correct the line");
  }
  if (!json.is_object())
    throw Error(Code::kSyntax, "no object").at(place).legal(kForm).fix("correct the line");
  if (!twice.empty())
    throw Error(Code::kSyntax, "\"" + twice + "\" is there twice").at(place).fix("take one of them out");
  return json;
}

// The fields of one line.
class Fields {
 public:
  Fields(std::string_view line, std::string place)
      : place_(std::move(place)), json_(parse_line(line, place_)) {
    for (const auto& [key, value] : json_.items())
      if (std::ranges::find(kFieldNames, key) == kFieldNames.end())
        throw Error(Code::kUnknownField, "a sample has no field \"" + valid_utf8(key.substr(0, 40)) + "\"")
            .at(place_)
            .legal(kFields)
            .fix("take it out, or correct its name; docs/omni_data.md explains each");
  }

  std::string required(const char* key, std::size_t most) const {
    if (!json_.contains(key))
      throw Error(Code::kMissingField, "the sample has no \"" + std::string(key) + "\"")
          .at(place_)
          .legal("id, text, category and split in every line")
          .fix("add it; docs/omni_data.md says what it means");
    return text(key, most);
  }

  std::string optional(const char* key) const { return json_.contains(key) ? text(key, kMostName) : ""; }

  [[noreturn]] void refuse(const std::string& cause, const std::string& legal) const {
    throw Error(Code::kBadValue, cause).at(place_).legal(legal).fix("correct the line");
  }

 private:
  std::string text(const char* key, std::size_t most) const {
    const std::string legal = fmt::format("text of 1 to {} bytes, without control characters", most);
    const Json& value = json_.at(key);
    if (!value.is_string()) refuse("\"" + std::string(key) + "\" is no text but " + value.type_name(), legal);
    auto content = value.get<std::string>();
    if (content.empty() || content.size() > most)
      refuse(fmt::format("\"{}\" has {} bytes", key, content.size()), legal);
    // A text may have line breaks. In a name they would break the messages that quote it.
    const bool lines = std::string_view(key) == "text";
    for (const char c : content)
      if (static_cast<unsigned char>(c) < 0x20 && !(lines && (c == '\n' || c == '\t')))
        refuse(fmt::format("\"{}\" has the control character {}", key, int{c}), legal);
    return content;
  }

  std::string place_;
  Json json_;
};

bool is_hash(std::string_view text) {
  return text.size() == 16 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

MediaFile file_of(const Fields& fields, const std::string& key) {
  MediaFile file{fields.optional(key.c_str()), fields.optional((key + "_xxh3").c_str())};
  const fs::path path(file.path);
  if (path.is_absolute() || std::ranges::find(path, fs::path("..")) != path.end())
    fields.refuse("\"" + key + "\" is \"" + file.path + "\", which leaves the manifest's folder",
                  "a path below it, without ..");
  if (!file.xxh3.empty() && file.path.empty())
    fields.refuse("\"" + key + "_xxh3\" without \"" + key + "\"", "both, or \"" + key + "\" alone");
  if (!file.xxh3.empty() && !is_hash(file.xxh3))
    fields.refuse("\"" + key + "_xxh3\" is \"" + file.xxh3 + "\"",
                  "16 hexadecimal digits in lower case, as xxhsum -H3 prints");
  return file;
}

MediaSplit split_of(const Fields& fields) {
  const std::string text = fields.required("split", kMostName);
  for (const MediaSplit split : {MediaSplit::kTrain, MediaSplit::kHeldBack})
    if (text == name(split)) return split;
  fields.refuse("\"split\" is \"" + text + "\"", "train, held-back");
}

MediaSample sample_of(const Fields& fields) {
  MediaSample s;
  s.id = fields.required("id", kMostName);
  s.text = fields.required("text", kMostText);
  s.image = file_of(fields, "image");
  s.audio = file_of(fields, "audio");
  s.category = fields.required("category", kMostName);
  s.split = split_of(fields);
  return s;
}

void put(Json& json, const std::string& key, const MediaFile& file) {
  if (file.path.empty()) return;
  json[key] = file.path;
  if (!file.xxh3.empty()) json[key + "_xxh3"] = file.xxh3;
}

}  // namespace

std::string_view name(MediaSplit split) { return split == MediaSplit::kTrain ? "train" : "held-back"; }

std::vector<MediaSample> parse_manifest(std::string_view content, const std::string& place) {
  std::vector<MediaSample> samples;
  std::unordered_map<std::string, std::int64_t> line_of;
  std::int64_t line = 0;
  for (const std::string_view text : lines_of(content)) {
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;  // an empty line is no sample
    const Fields fields(text, fmt::format("{}:{}", place, line));
    samples.push_back(sample_of(fields));
    const auto [at, fresh] = line_of.emplace(samples.back().id, line);
    if (!fresh)
      fields.refuse(fmt::format("the id \"{}\" is that of line {}", samples.back().id, at->second),
                    "each id once");
  }
  if (samples.empty())
    throw Error(Code::kBadCorpus, "the manifest has no sample")
        .at(place)
        .legal(std::string("a line for each: ") + kForm)
        .fix("make it with tools/omni_data, or as docs/omni_data.md says");
  return samples;
}

MediaManifest read_manifest(const fs::path& path) {
  return {path.parent_path(), parse_manifest(read_media_file(path), path.string())};
}

std::string manifest_line(const MediaSample& sample) {
  Json json;
  json["id"] = sample.id;
  json["text"] = sample.text;
  put(json, "image", sample.image);
  put(json, "audio", sample.audio);
  json["category"] = sample.category;
  json["split"] = name(sample.split);
  return json.dump();
}

void write_manifest(const fs::path& path, const std::vector<MediaSample>& samples) {
  std::string content;
  for (const MediaSample& s : samples) content += manifest_line(s) + '\n';
  write_media_file(path, content);
}

MediaManifest only(const MediaManifest& manifest, MediaSplit split) {
  MediaManifest part{manifest.folder, {}};
  std::ranges::copy_if(manifest.samples, std::back_inserter(part.samples),
                       [split](const MediaSample& s) { return s.split == split; });
  return part;
}

std::string read_sample_file(const MediaManifest& manifest, const MediaFile& file) {
  const fs::path path = manifest.folder / file.path;
  std::string content = read_media_file(path);
  const std::string found = file.xxh3.empty() ? "" : xxh3(content);
  if (found != file.xxh3)
    throw Error(Code::kBadCorpus, "another file than the manifest's: its hash is " + found)
        .at(path.string())
        .legal(file.xxh3)
        .fix("take it from its source again (tools/omni_data), or write the manifest anew");
  return content;
}

void check_files(const MediaManifest& manifest) {
  parallel_for(manifest.samples.size(), [&](std::size_t i) {
    const MediaSample& s = manifest.samples[i];
    for (const MediaFile* file : {&s.image, &s.audio})
      if (!file->path.empty()) read_sample_file(manifest, *file);
  });
}

}  // namespace hyperrun
