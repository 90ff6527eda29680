// Makes the folders of samples that tools/omni_data offers (docs/omni_data.md), from what it has fetched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <vector>

namespace hyperrun {

// Told after each sample: how many of how many are done.
using PrepareProgress = std::function<void(std::size_t done, std::size_t all)>;

// From the unpacked emoji-datasource-google: `out`/ID.png and `out`/manifest.jsonl. Each picture is decoded
// once. Errors as emoji_samples, decode_png and files say.
void prepare_emoji(const std::filesystem::path& package, const std::filesystem::path& out,
                   const PrepareProgress& progress);

// From a list of sounds: `out`/ID.wav at kMelRate, mono, 16 bits, and `out`/manifest.jsonl. A line of the
// list has five fields with tabs between them: id, text, category, split (train, held-back, or by-id:
// held_back in emoji.h says), path of the WAV. kBadValue at "LIST:LINE" for a line that has not, or an id
// that cannot be a file's name; kBadCorpus for an empty list.
void prepare_speech(const std::filesystem::path& list, const std::filesystem::path& out,
                    const PrepareProgress& progress);

// One manifest of several, their samples one after the other; they lie below the folder of `out`, and so
// paths of files are written anew. kBadValue at `out`:LINE: an id is in two of them, or a manifest lies
// elsewhere.
void join_manifests(const std::vector<std::filesystem::path>& parts, const std::filesystem::path& out);

}  // namespace hyperrun
