// hyperrun calibrate: measures the machine with the same executor and collectives as a run, and writes a
// profile with which the simulator predicts runs on it.
#include <fcntl.h>
#include <fmt/core.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>

#include "collectives/world.h"
#include "launcher/commands.h"
#include "memory/shared_window.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/calibrate/fit_machine.h"
#include "runtime/calibrate/measure.h"
#include "runtime/device/kernels/thread.h"
#include "runtime/process/launch.h"
#include "runtime/process/process_start.h"
#include "runtime/rank/mpi_start.h"
#include "runtime/report/file.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/table.h"
#include "runtime/report/writable.h"
#include "runtime/spec/profile_writer.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void become_mpirun(const CalibrateArguments& a) {
  process::LaunchSpec spec;
  process::require_program(spec.mpirun);
  spec.ranks = a.devices;
  spec.program = {fs::read_symlink("/proc/self/exe"),
                  "calibrate",
                  "--devices",
                  std::to_string(a.devices),
                  "--out",
                  a.out,
                  "--seconds",
                  std::to_string(a.seconds)};
  spec.root = geteuid() == 0;
  const process::LaunchCommand command = process::launch_command(spec);
  process::become_process(command.argv, command.environment);
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

// Other work on the host makes every measurement longer.
void warn_if_busy() {
  double load = 0;
  if (getloadavg(&load, 1) != 1 || load <= 0.5 * cores()) return;
  std::fprintf(
      stderr,
      "warning: %.1f processes were busy on this host in the last minute: it will be measured as slower "
      "than it is; calibrate when it is quiet\n",
      load);
}

// A device's share of the host's free shared memory, in whole MiB.
Bytes room_for_hbm(int devices_of_host) {
  return Bytes(std::max(largest_arena(free_shared_memory(), devices_of_host), kMiB).value / kMiB.value *
               kMiB.value);
}

void tell_round(int round, int rounds) {
  std::fprintf(stderr, "%scalibrating: round %d of %d%s", isatty(STDERR_FILENO) ? "\r" : "", round + 1,
               rounds, isatty(STDERR_FILENO) && round + 1 < rounds ? "" : "\n");
  std::fflush(stderr);
}

std::string describe_setting(const Setting& s) {
  const int devices = s.topology.size(), hosts = s.topology.hosts();
  std::string text =
      fmt::format("{} {} on {}{}, {} {}, {}; as calibrated with all devices at work at once", devices,
                  devices == 1 ? "device" : "devices", hosts > 1 ? fmt::format("{} hosts like ", hosts) : "",
                  host_name(), s.cores, s.cores == 1 ? "core" : "cores", kernels::vector_target());
  if (devices / hosts > s.cores) text += ", which share them";
  if (s.in_order) text += "; the streams of a device take turns";
  return text;
}

std::string nanos(double v) { return to_string(Nanos(std::llround(v))); }

std::string percent_off(double ratio) { return fmt::format("{:+.0f} %", (ratio - 1) * 100); }

// Prints each measured point beside the profile's prediction, then the errors by class of points.
void print_comparison(const std::vector<Measured>& measured, const Setting& setting, const Machine& machine) {
  Table points({left("instruction"), right("measured"), right("profile"), right("error")});
  Table classes({left("class"), right("points"), right("mean error"), right("worst")});
  for (std::size_t c = 0; c < kPointClasses; ++c) {
    double sum = 0, worst = 1;
    int count = 0;
    for (const Measured& m : measured) {
      if (m.point.cls != static_cast<PointClass>(c)) continue;
      const double by_profile = predicted(m.point, setting, machine),
                   ratio = by_profile / m.measurement.nanos;
      points.row({describe(m.point, setting.mesh), nanos(m.measurement.nanos), nanos(by_profile),
                  percent_off(ratio)});
      sum += std::abs(ratio - 1);
      if (std::abs(std::log(ratio)) > std::abs(std::log(worst))) worst = ratio;
      ++count;
    }
    if (count == 0) continue;
    points.rule();
    classes.row({std::string(name(static_cast<PointClass>(c))), std::to_string(count),
                 fmt::format("{:.0f} %", sum / count * 100), percent_off(worst)});
  }
  std::printf("%s\n%s", points.str().c_str(), classes.str().c_str());
}

void conclude(const CalibrateArguments& a, const std::vector<Measured>& measured, const Setting& setting) {
  Machine machine = fit_machine(measured, setting);
  machine.name = fs::path(a.out).stem();
  machine.about = describe_setting(setting);
  try {
    write_file_atomically(a.out, to_textproto(machine));
  } catch (const Error& e) {
    throw at_option("--out", e);
  }
  print_comparison(measured, setting, machine);
  std::printf("\n%s\nprofile: %s\n", machine.about.c_str(), a.out.c_str());
  std::fflush(stdout);
}

void calibrate_rank(const CalibrateArguments& a, Bytes hbm) {
  const MpiHosts hosts(MPI_COMM_WORLD);
  kernels::use_calling_thread_only();
  kernels::flush_denormals(true);
  Arena arena = make_shared_arena(hosts, kCalibrationMemory);
  PoolBacking pool(make_shared_arena(hosts, kPointPool));
  const std::unique_ptr<World> world = make_mpi_world(hosts, arena);
  const bool threads = threads_pay(StreamThreads::kAuto, hosts);
  const Setting setting{mesh_of_devices(world->size()), world->topology(), cores(), hbm, !threads, hbm};
  const std::vector<Point> points = points_of(setting.mesh);
  MeasureOptions options{.seconds = a.seconds, .thread_per_stream = threads};
  if (hosts.rank() == 0) options.on_round = tell_round;
  const std::vector<Measurement> measurements =
      measure(points, setting.mesh, {arena, &pool}, *world, options);
  if (hosts.rank() != 0) return;
  std::vector<Measured> measured;
  for (std::size_t i = 0; i < points.size(); ++i) measured.push_back({points[i], measurements[i]});
  conclude(a, measured, setting);
}

// Runs under mpirun, which ends the other ranks if this one fails.
int run_rank(const CalibrateArguments& a) {
  const int rank = rank_from_environment(), size = world_size_from_environment();
  init_log("device " + std::to_string(rank));
  Bytes hbm;
  try {
    if (rank == 0) {
      if (a.devices != 0 && a.devices != size)
        throw Error(Code::kTooFewRanks,
                    fmt::format("--devices asks for {}, mpirun started {}", a.devices, size))
            .at("--devices")
            .legal(fmt::format("{}, or leave it out", size));
      require_writable(a.out, "--out");
      const int local = std::max(1, from_environment("OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"));
      require_shared_memory(arenas_need(kCalibrationMemory, local));
      hbm = room_for_hbm(local);
      warn_if_busy();
    }
    start_mpi();
    calibrate_rank(a, hbm);
    MPI_Finalize();
  } catch (const Error& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", e.what());
    _exit(static_cast<int>(exit_code(e.code())));
  }
  return 0;
}

}  // namespace

int calibrate(const CalibrateArguments& arguments) {
  if (process::detect_launcher() != process::Launcher::kNone) return run_rank(arguments);
  if (arguments.devices == 0)
    throw Error(Code::kUsage, "calibrate needs the number of devices")
        .at("--devices")
        .legal("1 or more")
        .fix(fmt::format("hyperrun calibrate --devices {} --out {}", cores(), arguments.out));
  require_writable(arguments.out, "--out");
  require_shared_memory(arenas_need(kCalibrationMemory, arguments.devices));
  become_mpirun(arguments);
}

}  // namespace hyperrun
