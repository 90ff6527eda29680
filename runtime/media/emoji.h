// The pictures of npm's emoji-datasource packages: emoji.json lists them with their names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/media/manifest.h"

namespace hyperrun {

// A sample for each entry of which Google has drawn a picture, in the order of the file: id is the picture's
// name without .png (the characters' code points: "1f438"), text the emoji's name in lower case ("frog
// face"), image the picture's file name, category the file's. One in ten is held back (held_back). Variations
// in the tone of skin are left out: their name is that of the entry. kBadCorpus at `place`: no such list.
std::vector<MediaSample> emoji_samples(std::string_view emoji_json, const std::string& place);

// True if the hash of an id holds the sample back: one in ten, independent of all other samples.
bool held_back(std::string_view id);

}  // namespace hyperrun
