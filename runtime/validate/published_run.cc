#include "runtime/validate/published_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/base/split.h"
#include "runtime/base/utf8.h"

namespace hyperrun {
namespace {

// The fields of a line, without the spaces around them.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields = split(line, ',');
  for (std::string_view& f : fields) {
    f.remove_prefix(std::min(f.find_first_not_of(' '), f.size()));
    f.remove_suffix(f.size() - std::min(f.find_last_not_of(' ') + 1, f.size()));
  }
  return fields;
}

constexpr std::array kRequired{"devices", "batch",    "micro_batch", "hidden", "heads",
                               "layers",  "sequence", "tp",          "dp",     "pp"};
constexpr std::array kOptional{"milliseconds", "gib",       "set",     "use",      "model",       "kv_heads",
                               "ffn",          "vocab",     "cp",      "ep",       "sp",          "zero",
                               "recompute",    "gradients", "profile", "software", "dense_layers"};

// The fields of one line, by the columns' names.
class Line {
 public:
  Line(const std::vector<std::string_view>& columns, std::string_view text, std::string place)
      : place_(std::move(place)) {
    const auto fields = fields_of(text);
    if (fields.size() != columns.size())
      refuse(fmt::format("{} fields", fields.size()), fmt::format("{}, one a column", columns.size()));
    for (std::size_t i = 0; i < fields.size(); ++i) fields_[columns[i]] = fields[i];
  }

  std::string text(std::string_view column, const std::string& otherwise) const {
    const auto found = fields_.find(column);
    return found == fields_.end() ? otherwise : std::string(found->second);
  }

  double number(const char* column, const std::string& legal = "a number from 1e-3 to 1e12") const {
    const std::string_view field = fields_.at(column);
    double value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size() || !(value >= 1e-3) || value > 1e12)
      refuse(std::string(column) + " is \"" + std::string(field) + "\"", legal);
    return value;
  }

  // True if the line has something in the column.
  bool has(std::string_view column) const {
    const auto found = fields_.find(column);
    return found != fields_.end() && !found->second.empty();
  }

  std::int32_t count(const char* column, std::int32_t most) const {
    const std::string legal = fmt::format("a whole number from 1 to {}", most);
    const double value = number(column, legal);
    if (value != std::floor(value) || value > most)
      refuse(std::string(column) + " is " + text(column, ""), legal);
    return static_cast<std::int32_t>(value);
  }
  std::int32_t count(const char* column, std::int32_t most, std::int32_t otherwise) const {
    return has(column) ? count(column, most) : otherwise;
  }

  std::string choice(const char* column, const std::vector<std::string>& values) const {
    const std::string value = has(column) ? text(column, "") : values.front();
    if (std::ranges::find(values, value) == values.end())
      refuse(fmt::format("{} is \"{}\"", column, value), joined(values));
    return value;
  }

  [[noreturn]] void refuse(const std::string& cause, const std::string& legal) const {
    throw Error(Code::kBadValue, cause).at(place_).legal(legal).fix("correct the line");
  }

 private:
  std::string place_;
  std::map<std::string_view, std::string_view> fields_;
};

void check(const PublishedRun& r, const Line& line) {
  const auto product = std::int64_t{r.tensor} * r.context * r.data * r.pipeline;
  if (product != r.devices)
    line.refuse(fmt::format("tp x {}dp x pp is {}", r.context > 1 ? "cp x " : "", product),
                fmt::format("{}, the devices", r.devices));
  if (r.data % r.expert != 0) line.refuse("ep does not divide dp", "a divisor of dp");
  if (r.batch % (std::int64_t{r.micro_batch} * r.data) != 0)
    line.refuse(fmt::format("the batch of {} is no whole number of micro-batches", r.batch),
                "a multiple of micro_batch x dp");
  if (r.layers % r.pipeline != 0) line.refuse("layers do not divide over pp", "a multiple of pp");
  if (r.heads % r.tensor != 0 || r.hidden % r.heads != 0)
    line.refuse("heads do not divide over tp, or hidden over heads", "multiples");
}

PublishedRun run_of(const Line& line, const std::string& place) {
  PublishedRun r;
  r.set = line.text("set", "runs");
  r.calibrates = line.choice("use", {"judged", "calibration"}) == "calibration";
  constexpr std::int32_t kMany = 1 << 20;  // the limit of a job
  r.devices = line.count("devices", kMany), r.batch = line.count("batch", kMany);
  r.micro_batch = line.count("micro_batch", kMany);
  r.hidden = line.count("hidden", kMany), r.heads = line.count("heads", 4096);
  r.layers = line.count("layers", 4096);
  r.sequence = line.count("sequence", kMany);
  r.tensor = line.count("tp", 4096), r.data = line.count("dp", kMany), r.pipeline = line.count("pp", 4096);
  r.context = line.count("cp", 4096, 1), r.expert = line.count("ep", 4096, 1);
  r.model = line.choice("model", {"gpt2", "llama", "deepseek_v3"});
  r.kv_heads = line.count("kv_heads", 4096, 0), r.ffn = line.count("ffn", 1 << 22, 0);
  r.vocabulary = line.count("vocab", 1 << 22, r.vocabulary);
  r.dense_layers = line.count("dense_layers", 4096, 0);
  r.sequence_parallel = line.choice("sp", {"no", "yes"}) == "yes";
  r.zero = std::stoi(line.choice("zero", {"0", "1", "2", "3"}));
  r.recomputes = line.choice("recompute", {"full", "none"}) == "full";
  r.gradients = line.choice("gradients", {std::string(kBfloat16), "float32"});
  r.profile = line.text("profile", ""), r.software = line.text("software", "");
  if (line.has("milliseconds")) r.milliseconds = line.number("milliseconds");
  if (line.has("gib")) r.gibibytes = line.number("gib");
  if (r.milliseconds == 0 && r.gibibytes == 0)
    line.refuse("nothing was measured", "milliseconds, gib or both");
  r.place = place;
  check(r, line);
  return r;
}

bool same_but_for_time(const PublishedRun& a, const PublishedRun& b) {
  const auto all = [](const PublishedRun& r) {
    return std::tie(r.devices, r.batch, r.micro_batch, r.hidden, r.heads, r.layers, r.sequence, r.tensor,
                    r.data, r.pipeline, r.context, r.expert, r.model, r.profile);
  };
  return all(a) == all(b);
}

// Refuses a run that both calibrates and is judged.
void require_apart(const std::vector<PublishedRun>& runs) {
  for (const PublishedRun& a : runs)
    for (const PublishedRun& b : runs)
      if (a.calibrates && !b.calibrates && same_but_for_time(a, b))
        throw Error(Code::kBadValue, "this run is judged, and calibrates at " + a.place)
            .at(b.place)
            .legal("one use of a run")
            .fix("take one of the lines out");
}

void check_columns(const std::vector<std::string_view>& columns, const std::string& place) {
  const std::string legal = joined(kRequired, ",") + ", and any of " + joined(kOptional, ",");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string_view column = columns[i];
    const bool known = std::ranges::find(kRequired, column) != kRequired.end() ||
                       std::ranges::find(kOptional, column) != kOptional.end();
    const bool twice = std::find(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), column) !=
                       columns.begin() + static_cast<std::ptrdiff_t>(i);
    if (!known || twice)
      throw Error(Code::kBadValue,
                  "column \"" + std::string(column) + (known ? "\" is there twice" : "\" is not known"))
          .at(place)
          .legal(legal)
          .fix("take it out");
  }
  for (const char* wanted : kRequired)
    if (std::ranges::find(columns, wanted) == columns.end())
      throw Error(Code::kBadValue, std::string("there is no column \"") + wanted + "\"")
          .at(place)
          .legal(legal)
          .fix("name the columns in the first line");
}

}  // namespace

std::vector<PublishedRun> read_runs(std::string_view csv, const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets write it
  if (csv.starts_with(kByteOrderMark)) csv.remove_prefix(kByteOrderMark.size());
  if (!is_utf8(csv) || csv.find('\0') != csv.npos)
    throw Error(Code::kBadValue, "this is no text in UTF-8")
        .at(path)
        .legal("lines of fields with commas between them")
        .fix("save the table as CSV");
  std::vector<PublishedRun> runs;
  std::optional<std::vector<std::string_view>> columns;
  int number = 0;
  for (std::string_view line : split(csv, '\n')) {
    const std::string place = fmt::format("{}:{}", path, ++number);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    if (columns) {
      runs.push_back(run_of(Line(*columns, line, place), place));
    } else {
      columns = fields_of(line);
      check_columns(*columns, place);
    }
  }
  if (runs.empty())
    throw Error(Code::kBadValue, "there are no runs")
        .at(path)
        .legal("a line that names columns, then runs")
        .fix("add a line for each run");
  require_apart(runs);
  return runs;
}

namespace {

// The sizes of DeepSeek-V3 beside those that a run has columns for. The measured runs had an even
// load by force.
void add_deepseek_v3(ModelSpec& m, std::int32_t dense_layers) {
  m.latent = {.q_rank = 1536, .kv_rank = 512, .nope_dim = 128, .rope_dim = 64, .value_dim = 128};
  m.head_dim = m.latent.nope_dim + m.latent.rope_dim;
  m.experts.count = 256, m.experts.choices = 8, m.experts.ffn = 2048, m.experts.shared = 1;
  m.experts.dense_layers = dense_layers;
  m.experts.scoring = "sigmoid", m.experts.scale = 2.5, m.experts.bias_rate = 1e-3;
  m.experts.groups = 8, m.experts.group_choices = 4;
  m.experts.capacity = {.factor = 1, .drop = false};
}

ModelSpec model_of(const PublishedRun& run) {
  ModelSpec m;
  m.name = run.model;
  m.layers = run.layers, m.hidden = run.hidden, m.heads = run.heads;
  m.kv_heads = run.kv_heads > 0 ? run.kv_heads : run.heads;
  m.head_dim = run.hidden / run.heads;
  m.ffn = run.ffn > 0 ? run.ffn : 4 * run.hidden;
  m.vocab = run.vocabulary, m.sequence = run.sequence;
  m.tied_head = run.model == "gpt2";
  if (run.model == "deepseek_v3") add_deepseek_v3(m, run.dense_layers);
  return m;
}

}  // namespace

Job job_of(const PublishedRun& run, std::int32_t micro_batches) {
  Job job;
  job.name = "published";
  job.supernode.devices = run.devices;
  job.model = model_of(run);
  ParallelSpec& parallel = job.parallel;
  parallel.mesh = {{"pp", run.pipeline}, {"dp", run.data / run.expert}};
  parallel.presets = {"dp", "tp"};
  if (run.expert > 1) parallel.mesh.push_back({"ep", run.expert}), parallel.presets.push_back("ep");
  if (run.context > 1) parallel.mesh.push_back({"cp", run.context}), parallel.presets.push_back("cp");
  parallel.mesh.push_back({"tp", run.tensor});
  if (run.sequence_parallel && run.tensor > 1) parallel.presets.push_back("sp");
  if (run.zero > 0) parallel.presets.push_back(fmt::format("zero{}", run.zero));
  parallel.gradients = run.gradients;
  PipelineSpec& pipeline = parallel.pipeline;
  pipeline.axis = "pp";
  for (std::int32_t s = 0; s < run.pipeline; ++s) pipeline.stages.push_back({s, run.layers / run.pipeline});
  TrainingSpec& t = job.training;
  t.steps = 1;
  t.micro_batches = micro_batches;
  t.batch = micro_batches * run.micro_batch * run.data;
  t.precision = kBfloat16;
  if (run.recomputes) t.recompute = {{"full", 0, run.layers - 1}};
  return job;
}

}  // namespace hyperrun
