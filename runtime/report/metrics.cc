#include "runtime/report/metrics.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/report/file.h"
#include "runtime/report/json.h"

namespace hyperrun {
namespace {

Nanos from_seconds(double s) { return Nanos(std::llround(s * 1e9)); }

StepMetrics parse(const std::string& line) {
  Json json = Json::parse(line);
  auto number = [&](const char* key) { return get_number(json, key).value(); };
  StepMetrics m;
  m.step = json.at("step");
  m.loss = number("loss");
  m.grad_norm = number("grad_norm");
  m.lr = number("lr");
  m.tokens = json.at("tokens");
  m.tokens_per_second = number("tokens_per_second");
  m.step_time = from_seconds(json.at("step_seconds"));
  m.hbm_peak = Bytes(json.at("hbm_peak_bytes"));
  m.hbm_budget = Bytes(json.at("hbm_budget_bytes"));
  m.exposed_communication = number("exposed_communication");
  m.time = Nanos(json.at("time_ns"));
  return m;
}

// Cuts the half line that a run leaves when it is killed while it writes.
void cut_torn_line(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return;
  std::string text = read_whole_file(path);
  auto whole = text.rfind('\n') + 1;  // npos + 1 is 0
  if (whole == text.size()) return;
  std::filesystem::resize_file(path, whole, error);
  if (error) throw unwritable(path, "cut the torn last line off", error.value());
}

}  // namespace

std::string to_json_line(const StepMetrics& m) {
  Json json;
  json["step"] = m.step;
  put_number(json, "loss", m.loss);
  put_number(json, "grad_norm", m.grad_norm);
  put_number(json, "lr", m.lr);
  json["tokens"] = m.tokens;
  put_number(json, "tokens_per_second", m.tokens_per_second);
  json["step_seconds"] = seconds(m.step_time);
  json["hbm_peak_bytes"] = m.hbm_peak.value;
  json["hbm_budget_bytes"] = m.hbm_budget.value;
  put_number(json, "exposed_communication", m.exposed_communication);
  json["time_ns"] = m.time.value;
  return json.dump();
}

MetricsWriter::MetricsWriter(const std::filesystem::path& path) {
  cut_torn_line(path);
  file_ = std::make_unique<OutputFile>(path, O_WRONLY | O_CREAT | O_APPEND);
}

MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::write(const std::string& json_line) { file_->write(json_line + '\n'); }

std::vector<StepMetrics> read_metrics(const std::filesystem::path& path) {
  std::string text = read_whole_file(path);
  std::vector<StepMetrics> all;
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    auto end = text.find('\n', begin);
    if (end == std::string::npos) break;
    try {
      auto m = parse(text.substr(begin, end - begin));
      while (!all.empty() && all.back().step >= m.step) all.pop_back();
      all.push_back(m);
    } catch (const std::exception& e) {
      throw Error(Code::kSyntax, std::string("is no line of metrics: ") + e.what())
          .at(fmt::format("{}:{}", path.string(), number));
    }
    begin = end + 1;
  }
  return all;
}

}  // namespace hyperrun
