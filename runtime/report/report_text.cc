#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <tuple>

#include "runtime/report/paced.h"
#include "runtime/report/report.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

constexpr std::size_t kManyDevices = 16;  // from this number of devices on the streams' table shows a summary
constexpr std::string_view kIndent = "  ";

template <class Unit>
std::string percent(Unit part, Unit whole) {
  if (whole.value <= 0) return "-";
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(part.value) / static_cast<double>(whole.value));
}

// The devices as "0-3,6".
std::string device_list(const std::vector<std::int32_t>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t last = i;
    while (last + 1 < devices.size() && devices[last + 1] == devices[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(devices[i]);
    if (last > i) text += '-' + std::to_string(devices[last]);
    i = last + 1;
  }
  return text;
}

// Groups of devices with equal `key`, in the order of the first of each group.
template <class Key>
std::vector<std::vector<const DeviceReport*>> groups(const RunReport& report, Key key) {
  std::vector<std::vector<const DeviceReport*>> out;
  for (const auto& d : report.devices) {
    auto same =
        std::find_if(out.begin(), out.end(), [&](const auto& g) { return key(*g.front()) == key(d); });
    if (same == out.end()) same = out.insert(out.end(), std::vector<const DeviceReport*>{});
    same->push_back(&d);
  }
  return out;
}

std::string device_list(const std::vector<const DeviceReport*>& group) {
  std::vector<std::int32_t> devices;
  devices.reserve(group.size());
  for (const auto* d : group) devices.push_back(d->device);
  return device_list(devices);
}

std::string headline(const RunReport& report, const ReportTotals& t) {
  std::string text =
      fmt::format("{}: {}{}{} on {} {}{}", report.job, with_separators(t.steps),
                  t.steps == 1 ? " step in " : " steps in ", to_string(report.time), report.devices.size(),
                  report.machine, report.devices.size() == 1 ? " device" : " devices");
  if (report.tokens > 0) {
    text += ", " + with_separators(std::llround(t.tokens_per_second)) + " tokens/s";
  }
  return text + '\n';
}

// The loss as "loss 5.5430 at step 1, 2.9871 at step 300 (least 2.9560 at step 290)".
std::string loss_line(const RunReport& report) {
  const StepReport *first = nullptr, *last = nullptr, *least = nullptr;
  for (const auto& s : report.steps) {
    if (!s.loss) continue;
    if (first == nullptr) first = &s;
    last = &s;
    if (std::isfinite(*s.loss) && (least == nullptr || *s.loss < *least->loss)) least = &s;
  }
  if (first == nullptr) return "";
  auto at = [](const StepReport& s) {
    return std::abs(*s.loss) < 1e6 ? fmt::format("{:.4f} at step {}", *s.loss, s.step)
                                   : fmt::format("{:.4g} at step {}", *s.loss, s.step);
  };
  std::string text = "loss " + at(*first);
  if (last != first) text += ", " + at(*last);
  if (least != nullptr && least != first && least != last) text += " (least " + at(*least) + ')';
  return text + '\n';
}

// The tiers without the executed categories, which overlap differently on devices that are otherwise alike.
std::vector<TierUse> as_planned(std::vector<TierUse> tiers) {
  for (TierUse& tier : tiers) {
    std::erase_if(tier.categories, [](const CategoryUse& c) { return c.planned == Bytes(0); });
    for (CategoryUse& c : tier.categories) c.executed = Bytes(0);
  }
  return tiers;
}

const DeviceReport& fullest(const std::vector<const DeviceReport*>& group) {
  const auto most = [](const DeviceReport* d) {
    Bytes sum{};
    for (const TierUse& tier : d->tiers)
      for (const CategoryUse& c : tier.categories) sum += c.executed;
    return sum;
  };
  return **std::ranges::max_element(group, {}, most);
}

// Explains rows that differ under equal totals.
constexpr const char* kTwoMoments =
    "  of each kind where the most was live: planned with one instruction after the other, executed as they\n"
    "  overlapped, which may be another moment\n";

std::string memory_table(const RunReport& report) {
  Table table({left("devices"), left("tier"), left("at the peak"), right("planned"),
               right(report.machine == "simulated" ? "simulated" : "executed"), right("of budget")});
  bool overlapped = false;
  for (const auto& group : groups(report, [](const auto& d) { return as_planned(d.tiers); })) {
    std::string devices = device_list(group);
    for (const auto& tier : fullest(group).tiers) {
      std::string off = tier.planned_peak == tier.executed_peak ? "" : "  not as planned";
      table.row({devices, tier.tier, "all", to_string(tier.planned_peak), to_string(tier.executed_peak),
                 percent(tier.executed_peak, tier.budget) + off});
      devices.clear();
      for (const auto& c : tier.categories) {
        if (c.planned.value == 0 && c.executed.value == 0) continue;
        table.row({"", "", c.category, to_string(c.planned), to_string(c.executed),
                   percent(c.executed, tier.budget)});
        overlapped = overlapped || c.planned != c.executed;
      }
    }
  }
  if (table.empty()) return "";
  return "\nmemory, peak of a device\n" + table.str(kIndent) + (overlapped ? kTwoMoments : "");
}

std::string collectives_table(const RunReport& report) {
  struct Sum {
    std::int64_t count = 0;
    Bytes bytes{}, most{};
    Nanos time{}, exposed{};
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  bool timed = false;
  for (const auto& d : report.devices) {
    for (const auto& c : d.collectives) {
      auto& sum = sums[{c.axis, c.collective}];
      sum.count = std::max(sum.count, c.count);
      sum.bytes += c.bytes;
      sum.most = std::max(sum.most, c.bytes);
      sum.time += c.time, sum.exposed += c.exposed;
      timed = timed || c.time.value > 0;
    }
  }
  if (sums.empty()) return "";
  const auto devices = static_cast<std::int64_t>(report.devices.size());
  std::vector<Column> columns{left("axis"), left("collective"), right("calls"), right("of a device"),
                              right("of all")};
  if (timed) columns.insert(columns.end(), {right("time of a device"), right("masked")});
  Table table(columns);
  for (const auto& [key, sum] : sums) {
    std::vector<std::string> row{key.first, key.second, with_separators(sum.count), to_string(sum.most),
                                 to_string(sum.bytes)};
    if (timed) {
      row.push_back(to_string(sum.time / devices));
      row.push_back(percent(sum.time - sum.exposed, sum.time));
    }
    table.row(row);
  }
  return "\ncommunication of all steps, bytes moved: sent, or of a message, fetched\n" + table.str(kIndent);
}

std::string transfers_table(const RunReport& report) {
  struct Sum {
    std::int64_t count = 0;
    Bytes bytes{}, most{}, elsewhere{};
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  Bytes elsewhere{};
  for (const auto& d : report.devices)
    for (const auto& t : d.transfers) {
      auto& sum = sums[{t.tier, t.transfer}];
      sum.count = std::max(sum.count, t.count);
      sum.bytes += t.bytes;
      sum.most = std::max(sum.most, t.bytes);
      sum.elsewhere += t.elsewhere;
      elsewhere += t.elsewhere;
    }
  if (sums.empty()) return "";
  std::vector columns{left("tier"), left("transfer"), right("times"), right("of a device"), right("of all")};
  if (elsewhere.value > 0) columns.push_back(right("other hosts"));
  Table table(columns);
  for (const auto& [key, sum] : sums) {
    std::vector row{key.first, key.second, with_separators(sum.count), to_string(sum.most),
                    to_string(sum.bytes)};
    if (elsewhere.value > 0) row.push_back(to_string(sum.elsewhere));
    table.row(row);
  }
  return "\nbetween HBM and what lies beyond, in all steps\n" + table.str(kIndent);
}

std::vector<std::string> stream_cells(const DeviceReport& d, const std::vector<std::string>& streams) {
  std::vector<std::string> cells;
  for (const auto& name : streams) {
    auto s =
        std::find_if(d.streams.begin(), d.streams.end(), [&](const auto& u) { return u.stream == name; });
    cells.push_back(s == d.streams.end() ? "-" : percent(s->busy, d.time));
  }
  cells.push_back(percent(d.exposed_communication, d.time));
  return cells;
}

// Streams in the order in which the devices name them.
std::vector<std::string> stream_names(const RunReport& report) {
  std::vector<std::string> names;
  for (const auto& d : report.devices) {
    for (const auto& s : d.streams) {
      if (std::find(names.begin(), names.end(), s.stream) == names.end()) names.push_back(s.stream);
    }
  }
  return names;
}

// The devices shown: if there are many, those with the least, the median and the most exposed communication.
std::vector<std::pair<std::string, const DeviceReport*>> stream_rows(const RunReport& report) {
  std::vector<std::pair<std::string, const DeviceReport*>> rows;
  for (const auto& d : report.devices) rows.emplace_back(std::to_string(d.device), &d);
  if (rows.size() <= kManyDevices) return rows;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second->exposed_communication < b.second->exposed_communication;
  });
  auto pick = [&](std::size_t i, const char* what) {
    return std::pair(rows[i].first + what, rows[i].second);
  };
  return {pick(0, " (least exposed)"), pick(rows.size() / 2, " (median)"),
          pick(rows.size() - 1, " (most exposed)")};
}

std::string streams_table(const RunReport& report) {
  auto streams = stream_names(report);
  if (streams.empty()) return "";
  std::vector<Column> columns = {left("device"), left("host"), right("time")};
  for (const auto& s : streams) columns.push_back(right(s));
  columns.push_back(right("exposed comm"));
  Table table(columns);
  for (const auto& [label, d] : stream_rows(report)) {
    std::vector<std::string> cells = {label, d->host, to_string(d->time)};
    for (auto& cell : stream_cells(*d, streams)) cells.push_back(std::move(cell));
    table.row(std::move(cells));
  }
  return "\ntime of all steps, share in which a stream was busy\n" + table.str(kIndent);
}

std::string warning(const ReportTotals& t) {
  if (t.off_plan.empty()) return "";
  return "\nwarning: devices " + device_list(t.off_plan) + " did not use the memory that was planned\n";
}

}  // namespace

std::string to_text(const RunReport& report) {
  auto t = totals(report);
  return headline(report, t) + loss_line(report) + memory_table(report) + collectives_table(report) +
         transfers_table(report) + streams_table(report) +
         (report.paced ? "\n" + describe_paced(*report.paced, "a step", "steps") : "") + warning(t);
}

}  // namespace hyperrun
