// hyperrun calibrate: measures the machine with the executor and the collectives of runs, and writes a
// profile with which the simulator foretells them.
#include <fcntl.h>
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
#include "runtime/base/format.h"
#include "runtime/base/log.h"
#include "runtime/calibrate/fit_machine.h"
#include "runtime/calibrate/measure.h"
#include "runtime/device/kernels/thread.h"
#include "runtime/process/launch.h"
#include "runtime/process/process_start.h"
#include "runtime/report/file.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/table.h"
#include "runtime/report/writable.h"
#include "runtime/run/mpi_start.h"
#include "runtime/spec/profile_writer.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void become_mpirun(const CalibrateArguments& a) {
  process::LaunchSpec spec;
  process::require_program(spec.mpirun);
  spec.devices = a.devices;
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

// What is measured beside other work is that work as well.
void warn_if_busy() {
  double load = 0;
  if (getloadavg(&load, 1) != 1 || load <= 0.5 * cores()) return;
  std::fprintf(
      stderr,
      "warning: %.1f processes were busy on this host in the last minute: it will be measured as slower "
      "than it is; calibrate when it is quiet\n",
      load);
}

// A device's part of what the host has left, in whole MiB.
Bytes room_for_hbm(int devices_of_host) {
  return Bytes(std::max(largest_arena(free_shared_memory(), devices_of_host), kMiB).value / kMiB.value *
               kMiB.value);
}

void tell_round(int round, int rounds) {
  std::fprintf(stderr, "%scalibrating: round %d of %d%s", isatty(STDERR_FILENO) ? "\r" : "", round + 1,
               rounds, isatty(STDERR_FILENO) && round + 1 < rounds ? "" : "\n");
  std::fflush(stderr);
}

std::string about(const Setting& s) {
  const int devices = s.topology.size(), hosts = s.topology.hosts();
  std::string text = std::to_string(devices) + (devices == 1 ? " device on " : " devices on ") +
                     (hosts > 1 ? std::to_string(hosts) + " hosts like " : "") + host_name() + ", " +
                     std::to_string(s.cores) + (s.cores == 1 ? " core, " : " cores, ") +
                     kernels::vector_target() + "; as calibrated with all devices at work at once";
  if (devices / hosts > s.cores) text += ", which share them";
  if (s.in_order) text += "; the streams of a device take turns";
  return text;
}

std::string nanos(double v) { return to_string(Nanos(std::llround(v))); }

std::string percent_off(double ratio) { return format("%+.0f %%", (ratio - 1) * 100); }

// Each point beside what the profile says of it, and how far that is off by class.
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
                 format("%.0f %%", sum / count * 100), percent_off(worst)});
  }
  std::printf("%s\n%s", points.str().c_str(), classes.str().c_str());
}

void conclude(const CalibrateArguments& a, const std::vector<Measured>& measured, const Setting& setting) {
  Machine machine = fit_machine(measured, setting);
  machine.name = fs::path(a.out).stem();
  machine.about = about(setting);
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

// Under mpirun, which ends the other ranks where one of them fails.
int run_rank(const CalibrateArguments& a) {
  const int rank = rank_from_environment(), size = world_size_from_environment();
  init_log("device " + std::to_string(rank));
  Bytes hbm;
  try {
    if (rank == 0) {
      if (a.devices != 0 && a.devices != size)
        throw Error(Code::kTooFewRanks, "--devices asks for " + std::to_string(a.devices) +
                                            ", mpirun started " + std::to_string(size))
            .at("--devices")
            .legal(std::to_string(size) + ", or leave it out");
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
        .fix("hyperrun calibrate --devices " + std::to_string(cores()) + " --out " + arguments.out);
  require_writable(arguments.out, "--out");
  require_shared_memory(arenas_need(kCalibrationMemory, arguments.devices));
  become_mpirun(arguments);
}

}  // namespace hyperrun
