#include "tests/model/text/reference.h"

#include <cstring>
#include <stdexcept>
#include <string_view>

#include "runtime/model/checkpoint/files.h"

namespace hyperrun {
namespace {

// A file of 32-bit numbers and bytes, from front to back.
class Numbers {
 public:
  explicit Numbers(const std::filesystem::path& path) : content_(read_file(path, Code::kMissingFile)) {}

  bool at_end() const { return at_ == content_.size(); }
  std::string_view take(std::size_t bytes) {
    if (bytes > content_.size() - at_) throw std::runtime_error("the file is cut short");
    at_ += bytes;
    return std::string_view(content_).substr(at_ - bytes, bytes);
  }
  std::uint32_t number() {
    std::uint32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string content_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> read_texts(const std::filesystem::path& texts) {
  std::vector<std::string> list;
  for (Numbers file(texts); !file.at_end();) list.emplace_back(file.take(file.number()));
  return list;
}

std::vector<ReferenceText> read_reference(const std::filesystem::path& texts,
                                          const std::filesystem::path& expected) {
  std::vector<ReferenceText> list;
  Numbers results(expected);
  for (std::string& text : read_texts(texts)) {
    ReferenceText& one = list.emplace_back();
    one.text = std::move(text);
    one.ids.resize(results.number());
    for (std::int32_t& id : one.ids) id = static_cast<std::int32_t>(results.number());
    one.decoded = results.take(results.number());
  }
  if (!results.at_end()) throw std::runtime_error("the results go on behind the texts");
  return list;
}

}  // namespace hyperrun
