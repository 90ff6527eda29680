#include "runtime/run/saved_documents.h"

#include <array>

#include "runtime/base/error.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/given_config.h"
#include "runtime/run/text_data.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

// Files of a folder of Hugging Face that go with its tokenizer.
constexpr std::array kOfTokenizer{"tokenizer_config.json",
                                  "special_tokens_map.json",
                                  "added_tokens.json",
                                  "vocab.json",
                                  "vocab.txt",
                                  "merges.txt",
                                  "tokenizer.model",
                                  "spiece.model",
                                  "chat_template.jinja",
                                  "chat_template.json"};
// Files that go with its model.
constexpr std::array kOfModel{
    "generation_config.json", "LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE", "NOTICE.txt",
    "USE_POLICY.md"};

using Documents = std::map<std::string, std::string>;

void add(const fs::path& folder, const std::string& name, Documents& documents) {
  if (fs::exists(folder / name)) documents[name] = read_file(folder / name, Code::kBadCheckpoint);
}

// Models of Hugging Face may have code of their own, which config.json names.
void add_code(const fs::path& folder, Documents& documents) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".py")
      add(folder, entry.path().filename().string(), documents);
}

bool is_json_object(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

std::string config_document(const Job& job, const Tokenizer& tokenizer) {
  const HfConfig config = checkpoint_config(job, tokenizer);
  const fs::path given = fs::path(job.run.resume) / "config.json";
  return job.run.resume.empty() || !fs::exists(given) ? to_config_json(config)
                                                      : to_config_json(config, given);
}

}  // namespace

void save_tokenizer(const Job& job, const Tokenizer& tokenizer, const fs::path& path) {
  const fs::path given = tokenizer_file(job);
  const std::string text = given.empty() ? "" : read_file(given, Code::kBadTokenizer);
  if (is_json_object(text))
    write_file(path, text);
  else
    write_tokenizer(tokenizer, path);
}

Documents checkpoint_documents(const Job& job, const Tokenizer& tokenizer, const fs::path& saved_tokenizer) {
  Documents documents;
  const fs::path resume = job.run.resume;
  const bool goes_on = !resume.empty() && fs::is_directory(resume);
  const bool same_tokenizer = goes_on && has_tokenizer_of(job, tokenizer);
  const fs::path given = same_tokenizer ? resume / "tokenizer.json" : tokenizer_file(job);
  if (given.filename() == "tokenizer.json")
    for (const char* name : kOfTokenizer) add(given.parent_path(), name, documents);
  if (same_tokenizer)
    for (const char* name : kOfModel) add(resume, name, documents);
  if (goes_on) add_code(resume, documents);
  documents["config.json"] = config_document(job, tokenizer);
  documents["tokenizer.json"] = read_file(saved_tokenizer, Code::kBadTokenizer);
  return documents;
}

}  // namespace hyperrun
