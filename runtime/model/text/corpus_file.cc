#include "runtime/model/text/corpus_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/base/utf8.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/checkpoint/text_lines.h"
#include "runtime/model/text/gzip.h"

namespace hyperrun {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::array<const char*, 2> kFields{"text", "content"};

struct Extension {
  std::string_view end;
  CorpusFormat format;
};
constexpr std::array kExtensions{
    Extension{".txt", CorpusFormat::kText}, Extension{".text", CorpusFormat::kText},
    Extension{".jsonl", CorpusFormat::kJsonLines}, Extension{".ndjson", CorpusFormat::kJsonLines},
    Extension{".json", CorpusFormat::kJson}};

// The first bytes of formats that are no texts, and what to do.
struct Binary {
  std::string_view begin;
  const char* name;
  const char* fix;
};
constexpr const char* kFromTable =
    "convert it: python3 -c \"import pandas; pandas.read_parquet('FILE').to_json('corpus.jsonl', "
    "orient='records', lines=True)\"";
constexpr std::array kBinaries{
    Binary{"PAR1", "Parquet", kFromTable},
    Binary{"ARROW1", "Arrow", "convert it to JSON lines with a field \"text\""},
    Binary{"\x28\xb5\x2f\xfd", "zstd", "decompress it (zstd -d), or compress it with gzip"},
    Binary{{"\xfd"
            "7zXZ",
            5},
           "xz",
           "decompress it (xz -d), or compress it with gzip"},
    Binary{"BZh", "bzip2", "decompress it (bzip2 -d), or compress it with gzip"},
    Binary{{"PK\x03\x04", 4}, "zip", "unpack it (unzip) into a folder, and give that"},
    Binary{"%PDF", "PDF", "convert it to a text (pdftotext)"}};

Error refused(const std::string& place, std::string cause) {
  return Error(Code::kBadCorpus, std::move(cause))
      .at(place)
      .legal("UTF-8: text, JSON lines or JSON; or one of them in gzip");
}

bool is_utf16(std::string_view text) { return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"); }

// No text in UTF-8 has a NUL in four bytes, while in UTF-16 at least each second byte of English is one.
bool is_full_of_zeros(std::string_view text) { return std::ranges::count(text, '\0') * 4 > std::ssize(text); }

// UTF-16 is no binary file: the user meant it to be read, and is told.
bool is_binary(std::string_view text) {
  return text.find('\0') != std::string_view::npos && !is_utf16(text) && find_invalid(text) < text.size();
}

void refuse_other_encodings(std::string_view text, const std::string& place) {
  for (const Binary& binary : kBinaries)
    if (text.starts_with(binary.begin))
      throw refused(place, fmt::format("it is a file of {}, not text", binary.name)).fix(binary.fix);
  constexpr const char* kFromUtf16 = "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW";
  if (is_utf16(text)) throw refused(place, "the text is in UTF-16").fix(kFromUtf16);
  if (is_full_of_zeros(text))
    throw refused(place, "most of its bytes are those of a binary file, or of UTF-16")
        .fix(std::string("give the text itself, not tokens or arrays of another program; from UTF-16 ") +
             kFromUtf16);
  if (is_binary(text)) throw refused(place, "it is a binary file").fix("give the text itself");
  const std::size_t invalid = find_invalid(text);
  if (invalid < text.size())
    throw Error(Code::kBadCorpus,
                fmt::format("byte {} begins no character: this is no text in UTF-8", invalid))
        .at(place)
        .fix("convert it (iconv -t UTF-8), or give another file");
}

// Takes documents out of JSON values.
class JsonTexts {
 public:
  explicit JsonTexts(CorpusDocuments& into) : into_(into) {}

  void add(const json& value, const std::string& place) {
    if (value.is_string()) return add_text(value.get<std::string>());
    if (!value.is_object())
      throw refused(place, std::string("is no text but ") + value.type_name())
          .fix("give objects with a field \"text\", or strings");
    if (into_.field.empty()) into_.field = field_of(value, place);
    const auto it = value.find(into_.field);
    if (it == value.end()) throw without_text(value, place);
    if (it->is_null()) return add_text("");
    if (!it->is_string())
      throw refused(fmt::format("{}: {}", place, into_.field),
                    std::string("is no text but ") + it->type_name())
          .fix("give each object its text as a string");
    add_text(it->get<std::string>());
  }

 private:
  void add_text(std::string text) {
    if (text.empty())
      ++into_.empty;
    else
      into_.texts.push_back(std::move(text));
  }

  // The first of our fields that the first object has; all others must have it as well.
  static std::string field_of(const json& value, const std::string& place) {
    for (const char* field : kFields)
      if (value.contains(field)) return field;
    throw without_text(value, place);
  }

  static Error without_text(const json& value, const std::string& place) {
    std::vector<std::string> fields;
    for (const auto& [name, unused] : value.items())
      if (fields.size() < 8) fields.push_back(valid_utf8(name.substr(0, 40)));
    return refused(place, fields.empty()
                              ? "the object is empty"
                              : fmt::format("the object has no text; its fields are {}", joined(fields)))
        .legal(fmt::format("the text in \"{}\", in all objects of a file", joined(kFields, "\" or \"")))
        .fix("rename the field, for example with jq -c '{text: .FIELD}'");
  }

  CorpusDocuments& into_;
};

json parsed(std::string_view text, const std::string& place) try {
  return json::parse(text);
} catch (const json::exception&) {
  throw refused(place, "not valid JSON").fix("correct it, or name the file .txt if it is a text");
}

void read_lines(std::string_view text, const std::string& place, CorpusDocuments& into) {
  JsonTexts texts(into);
  std::int64_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    const std::string here = fmt::format("{}:{}", place, ++number);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) texts.add(parsed(line, here), here);
  }
}

// Files named .json often have JSON lines: those are read as what they are.
void read_json(std::string_view text, const std::string& place, CorpusDocuments& into) {
  const json whole = json::parse(text, nullptr, false);
  if (whole.is_discarded() && text.find_first_not_of(" \t\r\n") != std::string_view::npos &&
      text[text.find_first_not_of(" \t\r\n")] == '{')
    return read_lines(text, place, into);
  if (whole.is_discarded()) parsed(text, place);
  JsonTexts texts(into);
  if (!whole.is_array()) return texts.add(whole, place);
  std::size_t index = 0;
  for (const json& value : whole) texts.add(value, fmt::format("{}[{}]", place, index++));
}

void read_text(std::string text, CorpusDocuments& into) {
  into.lines = text.find("\r\n") != std::string::npos;
  if (into.lines) {
    std::string with;
    with.swap(text);
    for (std::size_t i = 0; i < with.size(); ++i)
      if (with[i] != '\r' || i + 1 == with.size() || with[i + 1] != '\n') text += with[i];
  }
  if (!text.empty()) into.texts.push_back(std::move(text));
}

}  // namespace

std::optional<CorpusFormat> corpus_format(const fs::path& path) {
  const fs::path inner = path.extension() == ".gz" ? path.stem() : path;
  for (const Extension& e : kExtensions)
    if (inner.extension() == e.end) return e.format;
  return std::nullopt;
}

std::string reason_to_leave_out(const fs::path& path) {
  const std::string content = read_file(path, Code::kBadCorpus);
  if (content.empty()) return "empty";
  return !is_gzip(content) && is_binary(content) ? "binary" : "";
}

CorpusDocuments read_corpus_file(const fs::path& path, CorpusFormat format) {
  const std::string place = path.string();
  std::string text = read_file(path, Code::kBadCorpus);
  if (is_gzip(text)) text = gunzip(text, place);
  refuse_other_encodings(text, place);
  CorpusDocuments documents;
  const std::size_t mark = text.size() - without_mark(text).size();
  documents.mark = mark > 0;
  text.erase(0, mark);
  switch (format) {
    case CorpusFormat::kText: read_text(std::move(text), documents); break;
    case CorpusFormat::kJsonLines: read_lines(text, place, documents); break;
    case CorpusFormat::kJson: read_json(text, place, documents); break;
  }
  return documents;
}

}  // namespace hyperrun
