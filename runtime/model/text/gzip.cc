#include "runtime/model/text/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes that are inflated at once
constexpr int kGzipOnly = 16 + MAX_WBITS;

class Inflater {
 public:
  Inflater(std::string_view content, std::string place) : rest_(content), place_(std::move(place)) {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) fail("cannot be decompressed: no memory");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  std::string all() {
    std::string out;
    do {
      member(out);
    } while (is_gzip(rest()) && inflateReset(&stream_) == Z_OK);
    return out;
  }

 private:
  std::string_view rest() const { return rest_.substr(rest_.size() - unread()); }
  std::size_t unread() const { return stream_.avail_in + behind_; }

  void member(std::string& out) {
    int status = Z_OK;
    while (status != Z_STREAM_END) {
      refill();
      const std::size_t had = out.size();
      out.resize(had + kPiece);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + had);
      stream_.avail_out = static_cast<uInt>(kPiece);
      status = inflate(&stream_, Z_NO_FLUSH);
      out.resize(had + kPiece - stream_.avail_out);
      if (status == Z_BUF_ERROR || (status == Z_OK && unread() == 0 && stream_.avail_out > 0))
        fail("ends too early: the gzip file is cut short");
      if (status != Z_OK && status != Z_STREAM_END)
        fail(std::string("is damaged: ") + (stream_.msg != nullptr ? stream_.msg : "no gzip data"));
    }
  }

  // Gives zlib as much input as its counter can tell.
  void refill() {
    if (stream_.avail_in > 0) return;
    const std::size_t n = std::min<std::size_t>(behind_, std::numeric_limits<uInt>::max());
    // zlib's interface lacks a const; it only reads.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data() + rest_.size() - behind_));
    stream_.avail_in = static_cast<uInt>(n);
    behind_ -= n;
  }

  [[noreturn]] void fail(const std::string& cause) const {
    throw Error(Code::kBadCorpus, cause).at(place_).fix("copy or download the file again (gzip -t tests it)");
  }

  std::string_view rest_;
  std::string place_;
  z_stream stream_{};
  std::size_t behind_ = rest_.size();  // bytes that zlib has not been given
};

}  // namespace

bool is_gzip(std::string_view content) { return content.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view content, const std::string& place) {
  return Inflater(content, place).all();
}

}  // namespace hyperrun
