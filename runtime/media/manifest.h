// A manifest: the samples that a job of several modalities learns from, as JSON lines, one sample a line:
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
// split      "train" or "held-back": what is learnt from, and what is only evaluated
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
  std::string xxh3;  // empty: not told

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
  std::filesystem::path folder;      // what paths are relative to
  std::vector<MediaSample> samples;  // in the order of the lines
};

// The places of errors are "PATH:LINE". kMissingFile: no manifest there. kSyntax: a line that is no JSON
// object, a field twice. kUnknownField, kMissingField. kBadValue: a field of another kind, empty or too long,
// no UTF-8 or with control characters, a path that leaves the folder, no hash, an id that an earlier line
// has. kBadCorpus: not one sample.
MediaManifest read_manifest(const std::filesystem::path& path);

// What read_manifest does with the file's content; `place` stands for its path.
std::vector<MediaSample> parse_manifest(std::string_view content, const std::string& place);

// One line without its end, such that parse_manifest gives the sample back.
std::string manifest_line(const MediaSample& sample);

// Whole or not at all. kUnwritable.
void write_manifest(const std::filesystem::path& path, const std::vector<MediaSample>& samples);

// Of one split, in the manifest's order.
MediaManifest only(const MediaManifest& manifest, MediaSplit split);

// Reads every file that samples name: kMissingFile where one is not there, kBadCorpus where its hash is
// another than told. The places are the files'.
void check_files(const MediaManifest& manifest);

// The content of a sample's file, its hash compared where it is told. Errors as check_files.
std::string read_sample_file(const MediaManifest& manifest, const MediaFile& file);

}  // namespace hyperrun
