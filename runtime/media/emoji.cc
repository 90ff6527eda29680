#include "runtime/media/emoji.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/media/file.h"
#include "runtime/report/json.h"

namespace hyperrun {
namespace {

constexpr std::string_view kEnding = ".png";

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

MediaSample sample_of(const Json& entry) {
  MediaSample s;
  s.image.path = entry.at("image").get<std::string>();
  if (!s.image.path.ends_with(kEnding) || s.image.path.find('/') != std::string::npos)
    throw Error(Code::kBadCorpus, "an entry's picture is \"" + s.image.path + "\"");
  s.id = s.image.path.substr(0, s.image.path.size() - kEnding.size());
  s.text = lower_case(entry.at("name").get<std::string>());
  s.category = entry.at("category").get<std::string>();
  s.split = held_back(s.id) ? MediaSplit::kHeldBack : MediaSplit::kTrain;
  return s;
}

}  // namespace

std::vector<MediaSample> emoji_samples(std::string_view emoji_json, const std::string& place) try {
  std::vector<MediaSample> samples;
  for (const Json& entry : Json::parse(emoji_json))
    if (entry.at("has_img_google").get<bool>()) samples.push_back(sample_of(entry));
  return samples;
} catch (const Json::exception&) {
  throw Error(Code::kBadCorpus, "no list of emoji")
      .at(place)
      .legal("a list of objects with name, image, category and has_img_google")
      .fix("take emoji.json of emoji-datasource-google");
} catch (Error& e) {
  throw e.at(place).legal("a file name that ends in .png").fix("take emoji.json of emoji-datasource-google");
}

bool held_back(std::string_view id) { return std::stoull(xxh3(id), nullptr, 16) % 10 == 0; }

}  // namespace hyperrun
