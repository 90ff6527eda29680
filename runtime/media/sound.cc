#include "runtime/media/sound.h"

#include <fmt/core.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr int kMostChannels = 16;

Error damaged(const std::string& cause, const std::string& place) {
  return Error(Code::kBadCorpus, cause)
      .at(place)
      .legal(fmt::format("a whole WAV of {} to {} Hz and up to {} channels", kLeastRate, kMostRate,
                         kMostChannels))
      .fix("take the sound from its source again, convert it, or leave the sample out");
}

// A file in memory for libsndfile: read only, or growing if `written` is set.
struct Memory {
  std::string_view read;
  std::string* written = nullptr;
  sf_count_t at = 0;

  sf_count_t size() const {
    return static_cast<sf_count_t>(written != nullptr ? written->size() : read.size());
  }
};

sf_count_t on_size(void* user) { return static_cast<Memory*>(user)->size(); }

sf_count_t on_seek(sf_count_t offset, int whence, void* user) {
  auto* m = static_cast<Memory*>(user);
  const sf_count_t from = whence == SEEK_CUR ? m->at : whence == SEEK_END ? m->size() : 0;
  m->at = std::clamp<sf_count_t>(from + offset, 0, m->size());
  return m->at;
}

sf_count_t on_read(void* out, sf_count_t bytes, void* user) {
  auto* m = static_cast<Memory*>(user);
  const sf_count_t n = std::clamp<sf_count_t>(m->size() - m->at, 0, bytes);
  if (n > 0) std::memcpy(out, m->read.data() + m->at, static_cast<std::size_t>(n));
  m->at += n;
  return n;
}

sf_count_t on_write(const void* in, sf_count_t bytes, void* user) {
  auto* m = static_cast<Memory*>(user);
  const auto end = static_cast<std::size_t>(m->at + bytes);
  if (m->written->size() < end) m->written->resize(end);
  std::memcpy(m->written->data() + m->at, in, static_cast<std::size_t>(bytes));
  m->at += bytes;
  return bytes;
}

sf_count_t on_tell(void* user) { return static_cast<Memory*>(user)->at; }

SF_VIRTUAL_IO kInMemory = {on_size, on_seek, on_read, on_write, on_tell};

struct Close {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using File = std::unique_ptr<SNDFILE, Close>;

std::uint32_t little_endian(std::string_view four) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(four[i]);
  return value;
}

// Checks the lengths of the chunks: each must be within the file, up to the one with the samples. libsndfile
// would read as much as there is and not report the rest.
void require_whole(std::string_view bytes, const std::string& place) {
  if (bytes.size() < 12 || bytes.substr(0, 4) != "RIFF" || bytes.substr(8, 4) != "WAVE")
    throw damaged("no WAV: it does not begin as one", place);
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::uint64_t length = little_endian(bytes.substr(at + 4, 4));
    const std::uint64_t there = bytes.size() - at - 8;
    if (length > there)
      throw damaged(fmt::format("cut short: {} bytes are missing at its end", length - there), place);
    if (bytes.substr(at, 4) == "data") return;
    at += 8 + length + length % 2;
  }
  throw damaged("cut short: it has no samples", place);
}

File open_wav(Memory& memory, SF_INFO& info, const std::string& place) {
  require_whole(memory.read, place);
  File file(sf_open_virtual(&kInMemory, SFM_READ, &info, &memory));
  if (!file) throw damaged(std::string("no readable WAV: ") + sf_strerror(nullptr), place);
  const int kind = info.format & SF_FORMAT_TYPEMASK;
  if (kind != SF_FORMAT_WAV && kind != SF_FORMAT_WAVEX) throw damaged("a sound, but no WAV", place);
  if (info.samplerate < kLeastRate || info.samplerate > kMostRate)
    throw damaged(fmt::format("has {} samples a second", info.samplerate), place);
  if (info.channels < 1 || info.channels > kMostChannels)
    throw damaged(fmt::format("has {} channels", info.channels), place);
  if (info.frames < 1) throw damaged("has no samples", place);
  // No supported coding has more than 8 samples in a byte, so a larger number is an error of the head.
  if (info.frames > static_cast<sf_count_t>(memory.read.size()) * 8)
    throw damaged(fmt::format("says that it has {} samples", info.frames), place);
  return file;
}

float mean(std::span<const float> channels) {
  float sum = 0;
  for (const float v : channels) sum += v;
  return sum / static_cast<float>(channels.size());
}

}  // namespace

SoundSize wav_size(std::string_view bytes, const std::string& place) {
  Memory memory{bytes};
  SF_INFO info{};
  const File file = open_wav(memory, info, place);
  return {info.frames, info.samplerate};
}

Sound decode_wav(std::string_view bytes, const std::string& place) {
  Memory memory{bytes};
  SF_INFO info{};
  const File file = open_wav(memory, info, place);
  const auto channels = static_cast<std::size_t>(info.channels);
  Sound sound{info.samplerate, {}};
  sound.samples.reserve(static_cast<std::size_t>(info.frames));
  std::vector<float> block(4096 * channels);
  for (sf_count_t left = info.frames; left > 0;) {
    const sf_count_t n = sf_readf_float(file.get(), block.data(), std::min<sf_count_t>(left, 4096));
    if (n <= 0) throw damaged(fmt::format("cut short: the last {} samples cannot be read", left), place);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      sound.samples.push_back(mean(std::span(block).subspan(i * channels, channels)));
    left -= n;
  }
  if (!std::ranges::all_of(sound.samples, [](float v) { return std::isfinite(v); }))
    throw damaged("has a sample that is no finite number", place);
  return sound;
}

std::string encode_wav(const Sound& sound) {
  std::string content;
  Memory memory{{}, &content};
  SF_INFO info{};
  info.samplerate = sound.rate, info.channels = 1, info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  File file(sf_open_virtual(&kInMemory, SFM_WRITE, &info, &memory));
  HR_CHECK(file != nullptr, sf_strerror(nullptr));
  sf_command(file.get(), SFC_SET_CLIPPING, nullptr, SF_TRUE);
  const auto samples = static_cast<sf_count_t>(sound.samples.size());
  HR_CHECK(sf_writef_float(file.get(), sound.samples.data(), samples) == samples);
  file.reset();  // writes the lengths into the head
  return content;
}

}  // namespace hyperrun
