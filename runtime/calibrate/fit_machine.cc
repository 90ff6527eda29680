#include "runtime/calibrate/fit_machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/base/error.h"
#include "runtime/cost/cost.h"
#include "runtime/fit/least_squares.h"
#include "runtime/fit/rounded.h"

namespace hyperrun {
namespace {

constexpr double kNanosPerSecond = 1e9;

// A figure to fit, with a guess to start from.
struct FigureToFit {
  std::function<Figure&(Machine&)> of;
  double guess = 1;
  double least = 0, most = 0;
};

std::string counted(int n, const std::string& one) {
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

class MachineFitter {
 public:
  MachineFitter(const std::vector<Measured>& measured, const Setting& setting)
      : measured_(measured), setting_(setting) {
    machine_.tiles = {};
    machine_.hbm = {static_cast<double>(setting.hbm.value), Evidence::kMeasured,
                    "room for the devices' HBM, a share"};
    machine_.products.ceiling = whole();
    machine_.host_cores = {static_cast<double>(setting.cores), Evidence::kMeasured,
                           "hardware threads of the host"};
    machine_.levels = levels();
    if (!setting.in_order) return;
    const Figure none{0, Evidence::kMeasured,
                      "in the launches, which were timed with all that is between instructions"};
    machine_.feeder = {.forward = none, .backward = none, .in_order = true};
  }

  Machine run() {
    elementwise();
    products();
    attention();
    collectives();
    transfers();
    return machine_;
  }

 private:
  static Figure whole() {
    return {1, Evidence::kMeasured, "in the rate, which work without end would reach"};
  }

  std::vector<Level> levels() const {
    const int devices = setting_.topology.size(), hosts = setting_.topology.hosts(), each = devices / hosts;
    if (setting_.topology != Topology::uniform(hosts, each))
      throw Error(Code::kMpi,
                  "hosts have different numbers of devices, or devices are not numbered host by host")
          .fix("give each host as many slots, and let mpirun fill one after the other (--map-by slot)");
    std::vector<Level> all;
    if (each > 1 || hosts == 1) all.push_back({.name = "host", .devices = each, .addressable = true});
    if (hosts > 1) all.push_back({.name = "network"});
    all.back().devices = 1;
    return all;
  }

  // --- the model's parts ------------------------------------------------------------------------------

  void elementwise() {
    const auto all = of_class(PointClass::kElementwise);
    const auto rate = [&](auto quantity) {
      double best = 1000;
      for (const Measured* m : all)
        best = std::max(
            best, quantity(work(m->point.instr, setting_.mesh)) / m->measurement.nanos * kNanosPerSecond);
      return best;
    };
    seek(all, "elementwise instruction",
         {{[](Machine& m) -> Figure& { return m.hbm_bandwidth; },
           rate([](const Work& w) { return static_cast<double>(w.hbm.value); }), 1e4, 1e15},
          {[](Machine& m) -> Figure& { return m.vector; },
           rate([](const Work& w) { return static_cast<double>(w.flops.value); }), 1e4, 1e18},
          {[](Machine& m) -> Figure& { return m.launch_vector; }, shortest(all), 0.1, 1e9}});
  }

  void products() {
    const auto all = of_class(PointClass::kProduct);
    double best = 1000;
    for (const Measured* m : all)
      best = std::max(best, flops(m->point) / m->measurement.nanos * kNanosPerSecond);
    seek(all, "matrix product",
         {{[](Machine& m) -> Figure& { return m.cube.f32; }, best, 1e4, 1e18},
          {[](Machine& m) -> Figure& { return m.cube.bf16; }, best, 1e4, 1e18},
          {[](Machine& m) -> Figure& { return m.products.half; }, 16, 0.01, 1e6},
          {[](Machine& m) -> Figure& { return m.launch_cube; }, shortest(all), 0.1, 1e9}});
  }

  void attention() {
    seek(of_class(PointClass::kAttention), "attention instruction",
         {{[](Machine& m) -> Figure& { return m.attention.ceiling; }, 0.5, 1e-3, 1},
          {[](Machine& m) -> Figure& { return m.attention.half; }, 32, 0.01, 1e6}});
  }

  void collectives() {
    const auto all = of_class(PointClass::kCollective);
    if (all.empty()) return alone();
    std::vector<FigureToFit> figures{
        {[](Machine& m) -> Figure& { return m.launch_comm; }, shortest(all) / 2, 0.1, 1e9}};
    for (std::size_t l = 0; l < machine_.levels.size(); ++l) {
      figures.push_back(
          {[l](Machine& m) -> Figure& { return m.levels[l].latency; }, shortest(all) / 2, 0.1, 1e9});
      figures.push_back({[l](Machine& m) -> Figure& { return m.levels[l].bandwidth; },
                         machine_.hbm_bandwidth.value / 3, 1e4, 1e15});
    }
    seek(all, "collective", figures);
  }

  void transfers() {
    machine_.pool.capacity = {static_cast<double>(setting_.pool.value), Evidence::kMeasured,
                              "shared memory that is free, a share"};
    const auto all = of_class(PointClass::kTransfer);
    seek(all, "transfer",
         {{[](Machine& m) -> Figure& { return m.pool.bandwidth; }, machine_.hbm_bandwidth.value / 2, 1e4,
           1e15},
          {[](Machine& m) -> Figure& { return m.pool.latency; }, shortest(all), 0.1, 1e9}});
  }

  // Sets the figures of links for a calibration of one device, which has exchanged nothing.
  void alone() {
    const auto guess = [](double value) {
      return Figure{value, Evidence::kPlaceholder, "one device was calibrated, which has no links"};
    };
    machine_.launch_comm = guess(machine_.launch_vector.value);
    machine_.levels[0].latency = guess(1000);
    machine_.levels[0].bandwidth = guess(machine_.hbm_bandwidth.value);
  }

  // --- mechanism --------------------------------------------------------------------------------------

  std::vector<const Measured*> of_class(PointClass c) const {
    std::vector<const Measured*> list;
    for (const Measured& m : measured_)
      if (m.point.cls == c) list.push_back(&m);
    return list;
  }

  double flops(const Point& p) const { return static_cast<double>(work(p.instr, setting_.mesh).flops.value); }

  static double shortest(const std::vector<const Measured*>& list) {
    double least = 1e9;
    for (const Measured* m : list) least = std::min(least, m->measurement.nanos);
    return least;
  }

  // Fits logarithms of figures, because rates of machines differ by orders of magnitude. A figure that no
  // point depends on keeps its guess.
  void seek(const std::vector<const Measured*>& points, const std::string& what,
            const std::vector<FigureToFit>& figures) {
    HR_CHECK(!points.empty(), what);
    constexpr double kVague = 3;
    std::vector<Unknown> unknowns;
    unknowns.reserve(figures.size());
    for (const FigureToFit& s : figures)
      unknowns.push_back(
          {.deviation = kVague, .least = std::log(s.least / s.guess), .most = std::log(s.most / s.guess)});
    Machine trial = machine_;
    const auto set = [&](Machine& m, std::span<const double> at) {
      for (std::size_t i = 0; i < figures.size(); ++i)
        figures[i].of(m).value = figures[i].guess * std::exp(at[i]);
    };
    const auto residuals = [&](std::span<const double> at) {
      set(trial, at);
      std::vector<double> r;
      r.reserve(points.size());
      for (const Measured* p : points)
        r.push_back(std::log(predicted(p->point, setting_, trial) / p->measurement.nanos));
      return r;
    };
    set(machine_, least_squares(unknowns, residuals, {.scale = 0.1, .rounds = 100}).values);
    for (const FigureToFit& s : figures)
      s.of(machine_) = {rounded(s.of(machine_).value), Evidence::kMeasured, source(points, what)};
  }

  std::string source(const std::vector<const Measured*>& points, const std::string& what) const {
    const auto nanos = [](const Measured* m) { return m->measurement.nanos; };
    const auto [first, last] = std::ranges::minmax(points, {}, nanos);
    const auto words = [&](const Measured* m) {
      return describe(m->point, setting_.mesh) + " (" + to_string(Nanos(std::llround(nanos(m)))) + ")";
    };
    const int hosts = setting_.topology.hosts();
    return fmt::format("fitted to {}, from {} to {}, medians of {}; {} at once on {}{}",
                       counted(static_cast<int>(points.size()), what), words(first), words(last),
                       first->measurement.repeats, counted(setting_.topology.size(), "device"),
                       (hosts > 1 ? counted(hosts, "host") + " of " : ""), counted(setting_.cores, "core"));
  }

  const std::vector<Measured>& measured_;
  const Setting& setting_;
  Machine machine_;
};

}  // namespace

double predicted(const Point& point, const Setting& setting, const Machine& machine) {
  const auto* collective = std::get_if<instr::Collective>(&point.instr.op);
  if (collective == nullptr) {
    const double devices = static_cast<double>(setting.topology.size()) / setting.topology.hosts();
    const double share = machine.host_cores.value > 0 ? std::min(1.0, machine.host_cores.value / devices) : 1;
    const double nanos = point.cls == PointClass::kTransfer
                             ? transfer_cost(point.instr, machine).nanos()
                             : compute_cost(point.instr, setting.mesh, machine).nanos();
    return nanos / share;
  }
  const std::vector<int> ranks = setting.mesh.group(0, collective->axes);
  const Where where = where_of(ranks, setting.topology, machine);
  return collective_cost(*collective, where, machine).nanos();
}

Machine fit_machine(const std::vector<Measured>& measured, const Setting& setting) {
  return MachineFitter(measured, setting).run();
}

}  // namespace hyperrun
