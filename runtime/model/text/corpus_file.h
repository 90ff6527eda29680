// One file of a corpus: a text, JSON lines or JSON, each of them also compressed by gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

enum class CorpusFormat : std::uint8_t { kText, kJsonLines, kJson };

// The format of a file by its name, whose last extension may be .gz; nullopt for all other extensions.
std::optional<CorpusFormat> corpus_format(const std::filesystem::path& path);

struct CorpusDocuments {
  std::vector<std::string> texts;    // none is empty
  std::string field;                 // of JSON objects: the field that has the text; otherwise empty
  std::int64_t empty = 0;            // documents without any text, which are left out
  bool mark = false, lines = false;  // a byte order mark was left out, CRLF became LF
};

// Reads a file. A byte order mark is left out, and in texts CRLF becomes LF. The text of a JSON object is its
// field "text", or "content". Throws kMissingFile, or kBadCorpus with line and remedy: for other encodings
// than UTF-8, for binary files, and for JSON without texts.
CorpusDocuments read_corpus_file(const std::filesystem::path& path, CorpusFormat format);

// Why a file of a folder is not read although its name is that of a text: "empty" or "binary"; empty: it is.
std::string reason_to_leave_out(const std::filesystem::path& path);

}  // namespace hyperrun
