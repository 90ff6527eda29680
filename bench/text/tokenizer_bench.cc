// The speed of tokenizers of published models on the mixed text of tools/tokenizers, beside a copy of the
// text and a scan for invalid UTF-8 by the same thread.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/text/tokenizer.h"
#include "tests/model/text/reference.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

fs::path data() { return HYPERRUN_SOURCE_DIR "/data/tokenizers"; }

const std::vector<std::string>& texts() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> list = read_texts(data() / "texts.bin");
    list.pop_back();  // all of them once more
    return list;
  }();
  return all;
}

std::int64_t bytes_of_texts() {
  std::int64_t bytes = 0;
  for (const std::string& text : texts()) bytes += std::ssize(text);
  return bytes;
}

void count(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes_of_texts());
}

void copy(benchmark::State& state) {
  for (auto _ : state)
    for (const std::string& text : texts()) benchmark::DoNotOptimize(std::string(text));
  count(state);
}

void scan(benchmark::State& state) {
  for (auto _ : state)
    for (const std::string& text : texts()) benchmark::DoNotOptimize(find_invalid(text));
  count(state);
}

// Text by text, each with a cache of words of its own.
void encode(benchmark::State& state, const Tokenizer& tokenizer) {
  for (auto _ : state)
    for (const std::string& text : texts()) benchmark::DoNotOptimize(tokenizer.encode(text));
  count(state);
}

// All texts as one, as a corpus is.
void encode_whole(benchmark::State& state, const Tokenizer& tokenizer) {
  std::string whole;
  for (const std::string& text : texts()) whole += text;
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(whole));
  count(state);
}

void decode(benchmark::State& state, const Tokenizer& tokenizer) {
  std::vector<std::vector<std::int32_t>> ids;
  for (const std::string& text : texts()) ids.push_back(tokenizer.encode(text));
  for (auto _ : state)
    for (const auto& one : ids) benchmark::DoNotOptimize(tokenizer.decode(one));
  count(state);
}

void read(benchmark::State& state, const fs::path& file) {
  for (auto _ : state) benchmark::DoNotOptimize(read_tokenizer(file));
}

void add_benchmarks(const fs::path& folder) {
  const fs::path file = folder / "tokenizer.json";
  const std::string name = folder.filename().string();
  const auto tokenizer = std::make_shared<Tokenizer>(read_tokenizer(file));
  const auto add = [&](const std::string& what, auto function) {
    benchmark::RegisterBenchmark((what + "/" + name).c_str(), function)->Unit(benchmark::kMillisecond);
  };
  add("encode", [tokenizer](benchmark::State& state) { encode(state, *tokenizer); });
  add("encode_whole", [tokenizer](benchmark::State& state) { encode_whole(state, *tokenizer); });
  add("decode", [tokenizer](benchmark::State& state) { decode(state, *tokenizer); });
  add("read", [file](benchmark::State& state) { read(state, file); });
}

}  // namespace
}  // namespace hyperrun

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RegisterBenchmark("copy", hyperrun::copy);
  benchmark::RegisterBenchmark("scan", hyperrun::scan);
  for (const char* name : {"qwen3", "llama3_1", "deepseek_v3", "llama2", "gemma3", "gpt4o"})
    if (std::filesystem::exists(hyperrun::data() / name)) hyperrun::add_benchmarks(hyperrun::data() / name);
  benchmark::RunSpecifiedBenchmarks();
} catch (const hyperrun::Error& e) {
  std::fprintf(stderr, "%s\n  fix: run tools/tokenizers\n", e.what());
  return 6;
}
