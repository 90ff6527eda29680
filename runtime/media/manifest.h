// A manifest lists the samples of a job of several modalities as JSON, one sample on each line:
//
//   {"id": "1f438", "text": "frog face", "image": "1f438.png", "image_xxh3": "0f3c...", "category": "Animals
//   & Nature", "split": "train"}
//   {"id": "cat-en-us-f3", "text": "cat", "audio": "cat-en-us-f3.wav", "category": "word", "split":
//   "held-back"}
//
// id         names the sample, once in the file
// text       what the picture shows, what is said, or the text itself
// image      a PNG, audio a WAV: paths below the manifest's folder. Either, both, or none (text alone)
// image_xxh3, audio_xxh3   the file's hash (xxh3 in file.h), optional
// category   what kind of sample it is
// split      "train", or "held-back" for samples that are only evaluated
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

enum class MediaSplit : unsigned char { kTrain, kHeldBack };

std::string_view name(MediaSplit split);  // "train", "held-back"

// A file of a sample.
struct MediaFile {
  std::string path;  // below the manifest's folder; empty: the sample has none
  std::string xxh3;  // empty: not given

  bool operator==(const MediaFile&) const = default;
};

struct MediaSample {
  std::string id, text;
  MediaFile image, audio;
  std::string category;
  MediaSplit split = MediaSplit::kTrain;

  bool operator==(const MediaSample&) const = default;
};

struct MediaManifest {
  std::filesystem::path folder;      // paths are relative to it
  std::vector<MediaSample> samples;  // in the order of the lines
};

// Reads a manifest. The places of errors are "PATH:LINE". kMissingFile: no manifest there. kSyntax: a line
// that is no JSON object, a field twice. kUnknownField, kMissingField. kBadValue: a field of another kind,
// empty or too long, no UTF-8 or with control characters, a path that leaves the folder, no hash, an id that
// an earlier line has. kBadCorpus: not one sample.
MediaManifest read_manifest(const std::filesystem::path& path);

// Parses the content of a manifest like read_manifest; `place` stands for its path.
std::vector<MediaSample> parse_manifest(std::string_view content, const std::string& place);

// The line of a sample, without its end; parse_manifest reads it back.
std::string manifest_line(const MediaSample& sample);

// Writes a manifest, whole or not at all. kUnwritable.
void write_manifest(const std::filesystem::path& path, const std::vector<MediaSample>& samples);

// The manifest with the samples of one split only, in the same order.
MediaManifest only(const MediaManifest& manifest, MediaSplit split);

// Reads every file that samples name. kMissingFile if one does not exist, kBadCorpus if its hash differs from
// the manifest's; the places are the files.
void check_files(const MediaManifest& manifest);

// The content of a sample's file. Compares the hash if the manifest has one. Throws the errors of
// check_files.
std::string read_sample_file(const MediaManifest& manifest, const MediaFile& file);

}  // namespace hyperrun
