// A file of a corpus: a text, JSON lines or JSON, each of them also in gzip; and a file of tasks.
#include "runtime/model/text/corpus_file.h"
#include "runtime/reinforce/tasks.h"
#include "tests/fuzz/folder.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Folder folder;
  const std::string_view content = fuzz::text_of(data, size);
  folder.put("file", content);
  const std::filesystem::path path = folder.path() / "file";
  for (const CorpusFormat format : {CorpusFormat::kText, CorpusFormat::kJsonLines, CorpusFormat::kJson})
    fuzz::take_or_refuse_at([&] {
      for (const std::string& text : read_corpus_file(path, format).texts)
        fuzz::expect(!text.empty(), "an empty document");
    });
  fuzz::take_or_refuse([&] { reason_to_leave_out(path); });
  fuzz::take_or_refuse_at([&] { parse_tasks(content, "/tasks.jsonl"); });
  return 0;
}
