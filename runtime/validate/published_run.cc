#include "runtime/validate/published_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/base/split.h"
#include "runtime/base/utf8.h"

namespace hyperrun {
namespace {

constexpr std::int32_t kVocabulary = 51200;  // padded vocabulary of Megatron-LM's GPT

// The fields of a line, without the spaces around them.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields = split(line, ',');
  for (std::string_view& f : fields) {
    f.remove_prefix(std::min(f.find_first_not_of(' '), f.size()));
    f.remove_suffix(f.size() - std::min(f.find_last_not_of(' ') + 1, f.size()));
  }
  return fields;
}

constexpr const char* kNumbers[] = {"devices",  "batch", "micro_batch", "hidden", "heads",       "layers",
                                    "sequence", "tp",    "dp",          "pp",     "milliseconds"};

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

  std::int32_t count(const char* column, std::int32_t most) const {
    const std::string legal = fmt::format("a whole number from 1 to {}", most);
    const double value = number(column, legal);
    if (value != std::floor(value) || value > most)
      refuse(std::string(column) + " is " + text(column, ""), legal);
    return static_cast<std::int32_t>(value);
  }

  [[noreturn]] void refuse(const std::string& cause, const std::string& legal) const {
    throw Error(Code::kBadValue, cause).at(place_).legal(legal).fix("correct the line");
  }

 private:
  std::string place_;
  std::map<std::string_view, std::string_view> fields_;
};

void check(const PublishedRun& r, const Line& line) {
  const auto product = std::int64_t{r.tensor} * r.data * r.pipeline;
  if (product != r.devices)
    line.refuse(fmt::format("tp x dp x pp is {}", product), fmt::format("{}, the devices", r.devices));
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
  const std::string use = line.text("use", "judged");
  if (use != "calibration" && use != "judged") line.refuse("use is \"" + use + "\"", "calibration, judged");
  r.calibrates = use == "calibration";
  constexpr std::int32_t kMany = 1 << 20;  // the limit of a job
  r.devices = line.count("devices", kMany), r.batch = line.count("batch", kMany);
  r.micro_batch = line.count("micro_batch", kMany);
  r.hidden = line.count("hidden", kMany), r.heads = line.count("heads", 4096);
  r.layers = line.count("layers", 4096);
  r.sequence = line.count("sequence", kMany);
  r.tensor = line.count("tp", 4096), r.data = line.count("dp", kMany), r.pipeline = line.count("pp", 4096);
  r.milliseconds = line.number("milliseconds");
  r.place = place;
  check(r, line);
  return r;
}

bool same_but_for_time(const PublishedRun& a, const PublishedRun& b) {
  const auto all = [](const PublishedRun& r) {
    return std::tie(r.devices, r.batch, r.micro_batch, r.hidden, r.heads, r.layers, r.sequence, r.tensor,
                    r.data, r.pipeline);
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
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string_view column = columns[i];
    const bool known = column == "set" || column == "use" ||
                       std::ranges::any_of(kNumbers, [&](const char* name) { return column == name; });
    const bool twice = std::find(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), column) !=
                       columns.begin() + static_cast<std::ptrdiff_t>(i);
    if (!known || twice)
      throw Error(Code::kBadValue,
                  "column \"" + std::string(column) + (known ? "\" is there twice" : "\" is not known"))
          .at(place)
          .legal("devices,batch,micro_batch,hidden,heads,layers,sequence,tp,dp,pp,milliseconds, and set,use")
          .fix("take it out");
  }
  for (const char* wanted : kNumbers)
    if (std::ranges::find(columns, wanted) == columns.end())
      throw Error(Code::kBadValue, std::string("there is no column \"") + wanted + "\"")
          .at(place)
          .legal("devices,batch,micro_batch,hidden,heads,layers,sequence,tp,dp,pp,milliseconds, and set,use")
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

Job job_of(const PublishedRun& run, std::int32_t micro_batches) {
  Job job;
  job.name = "published";
  job.supernode.devices = run.devices;
  ModelSpec& m = job.model;
  m.name = "gpt2";
  m.layers = run.layers, m.hidden = run.hidden, m.heads = m.kv_heads = run.heads;
  m.head_dim = run.hidden / run.heads;
  m.ffn = 4 * run.hidden;
  m.vocab = kVocabulary, m.sequence = run.sequence;
  m.tied_head = true;
  job.parallel.mesh = {{"pp", run.pipeline}, {"dp", run.data}, {"tp", run.tensor}};
  job.parallel.presets = {"dp", "tp"};
  job.parallel.gradients = kBfloat16;
  PipelineSpec& pipeline = job.parallel.pipeline;
  pipeline.axis = "pp";
  for (std::int32_t s = 0; s < run.pipeline; ++s) pipeline.stages.push_back({s, run.layers / run.pipeline});
  TrainingSpec& t = job.training;
  t.steps = 1;
  t.micro_batches = micro_batches;
  t.batch = micro_batches * run.micro_batch * run.data;
  t.precision = kBfloat16;
  t.recompute = {{"full", 0, run.layers - 1}};
  return job;
}

}  // namespace hyperrun
