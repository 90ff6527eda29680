// Each component of tokenizer.json, compared with what Hugging Face's library gives (components_fixture.js).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/model/checkpoint/files.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

json fixture(const std::string& name) {
  return json::parse(read_file(HYPERRUN_SOURCE_DIR "/tests/model/text/fixture/" + name, Code::kMissingFile));
}

// The tokenizer of a case: the base, or a file, with the members of the case's patch in it.
Tokenizer tokenizer_of(const json& base, const json& one) {
  json root = one.contains("file") ? fixture(one["file"]) : base;
  root.update(one["patch"]);
  return {root.dump(), one["name"].get<std::string>()};
}

TEST(Components, GiveWhatTheLibraryGives) {
  const json all = fixture("components.json");
  EXPECT_GT(all["cases"].size(), 150U);
  for (const json& one : all["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const Tokenizer tokenizer = tokenizer_of(all["base"], one);
    for (const json& text : one["texts"]) {
      const Ids ids = text[1].get<Ids>();
      // A null is in place of the texts of cases that only decode.
      if (text[0].is_string()) {
        EXPECT_EQ(tokenizer.encode(text[0].get<std::string>()), ids) << text[0];
      }
      // A begin_of_text at the front is left out.
      if (!ids.empty() && ids[0] == tokenizer.begin_of_text()) continue;
      if (text[2].is_string()) {
        EXPECT_EQ(tokenizer.decode(ids), text[2].get<std::string>()) << json(ids);
      }
    }
  }
}

}  // namespace
}  // namespace hyperrun
