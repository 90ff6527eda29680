// Makes the folders of samples that tools/omni_data offers (docs/omni_data.md) from the files that it
// fetched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

namespace hyperrun {

// Called after each sample with the number of samples done and the number of all.
using PrepareProgress = std::function<void(std::size_t done, std::size_t all)>;

// Makes `out`/ID.png and `out`/manifest.jsonl from the unpacked emoji-datasource-google. Each picture is
// decoded once. Throws the errors of emoji_samples, decode_png and of files.
void prepare_emoji(const std::filesystem::path& package, const std::filesystem::path& out,
                   const PrepareProgress& progress);

// Makes `out`/ID.wav (at kMelRate, mono, 16 bits) and `out`/manifest.jsonl from a list of sounds. A line of
// the list has five fields with tabs between them: id, text, category, split, path of the WAV. The split is
// train, held-back, or by-id (held_back() of emoji.h decides). kBadValue at "LIST:LINE" for any other line,
// or an id that cannot be a file's name; kBadCorpus for an empty list.
void prepare_speech(const std::filesystem::path& list, const std::filesystem::path& out,
                    const PrepareProgress& progress);

// Joins several manifests, whose samples follow one another. They must be below the folder of `out`; the
// paths of files are made relative to it. kBadValue at `out`:LINE if an id is in two of them, or a manifest
// is elsewhere.
void join_manifests(const std::vector<std::filesystem::path>& parts, const std::filesystem::path& out);

}  // namespace hyperrun
