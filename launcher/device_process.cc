// One rank: an emulated NPU. The main thread owns MPI (with a thread a stream, the comm stream's thread
// does during a step) and executes what the controller sends.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>

#include "collectives/group.h"
#include "collectives/world.h"
#include "launcher/commands.h"
#include "launcher/mpi_start.h"
#include "launcher/protocol.h"
#include "launcher/text_data.h"
#include "launcher/whereabouts.h"
#include "memory/mpi_pool.h"
#include "memory/shared_window.h"
#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/base/format.h"
#include "runtime/base/log.h"
#include "runtime/control/auth.h"
#include "runtime/control/device_link.h"
#include "runtime/control/leftovers.h"
#include "runtime/control/spawn.h"
#include "runtime/cost/groups.h"
#include "runtime/device/executor.h"
#include "runtime/device/kernels/thread.h"
#include "runtime/device/state_files.h"
#include "runtime/inference/requests_io.h"
#include "runtime/inference/samples_io.h"
#include "runtime/model/text/sampler.h"
#include "runtime/report/version.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/session_io.h"
#include "runtime/spec/stats_io.h"

namespace hyperrun {
namespace {

constexpr double kPrepareSeconds = 3600;  // of the controller before it is ready: it may train a tokenizer
constexpr std::chrono::microseconds kServing{100};  // how often a device that waits looks after other hosts
constexpr int kStateGroup = 31;  // key of the group of all ranks; the plan's groups come first

struct Address {
  std::string controller, secret;
};

// mpirun gives its ranks a terminal of its own making, wherever its own output goes; that is what counts.
bool launcher_writes_to_terminal() {
  std::array<char, 64> target{};
  const std::string stdout_of_parent = "/proc/" + std::to_string(getppid()) + "/fd/1";
  if (readlink(stdout_of_parent.c_str(), target.data(), target.size() - 1) <= 0) return false;
  const std::string_view path = target.data();
  return path.starts_with("/dev/pts/") || path.starts_with("/dev/tty");
}

// Under a foreign mpirun nobody has started a controller yet: rank 0 does.
class ForeignController {
 public:
  explicit ForeignController(const RunArguments& arguments) {
    std::vector<std::string> argv{"", "controller", arguments.job, "--world",
                                  std::to_string(world_size_from_environment())};
    for (const auto& [option, value] :
         {std::pair{"--run-dir", arguments.directory}, {"--resume", arguments.resume}})
      if (!value.empty()) argv.insert(argv.end(), {option, value});
    if (arguments.quiet) argv.emplace_back("--quiet");
    secret_ = control::make_secret();
    std::vector<std::pair<std::string, std::string>> environment{{"HYPERRUN_SECRET", secret_}};
    if (!launcher_writes_to_terminal()) environment.emplace_back("TERM", "dumb");
    spawned_ = control::spawn_controller_process(argv, environment, kPrepareSeconds);
  }

  bool started() const { return !spawned_.address.empty(); }
  int status() const { return spawned_.status; }
  Address address() const { return {spawned_.address, secret_}; }
  int wait() const { return control::wait_for_controller(spawned_, 30); }

 private:
  control::SpawnedController spawned_;
  std::string secret_;
};

void broadcast(std::string& text) {
  auto size = static_cast<int>(text.size());
  MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(size));
  MPI_Bcast(text.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
}

// From this host's steady clock to Unix time, ns.
std::int64_t clock_shift() {
  const auto ns = [](auto t) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
  };
  return ns(std::chrono::system_clock::now()) - ns(std::chrono::steady_clock::now());
}

class Device {
 public:
  Device(control::DeviceLink& link, control::DeviceStatus& status, Whereabouts& whereabouts,
         std::atomic<bool>& cancel)
      : link_(link), status_(status), whereabouts_(whereabouts), cancel_(cancel), shift_(clock_shift()) {}

  void serve() {
    for (;;) {
      const control::Command command = next_command();
      if (std::holds_alternative<control::Shutdown>(command)) return;
      if (const auto* load = std::get_if<control::LoadProgram>(&command))
        start(session_from_bytes(load->content, "session"));
      else
        invoke(std::get<control::Invocation>(command));
    }
  }

 private:
  // This rank's share of the pool serves other hosts also while it has nothing to do.
  control::Command next_command() {
    if (!pool_ || !pool_->remote) return link_.next();
    for (;;) {
      if (std::optional<control::Command> command = link_.next_within(kServing)) return *std::move(command);
      world_->progress();
    }
  }

  void start(Session session) {
    session_ = std::move(session);
    const Job& job = session_.job;
    kernels::use_calling_thread_only();
    hosts_ = std::make_unique<MpiHosts>(MPI_COMM_WORLD);
    arena_.emplace(make_shared_arena(*hosts_, job.supernode.hbm, session_.plan.peak()));
    start_tiers();
    RemoteMemory* const remote = pool_ ? pool_->remote.get() : nullptr;
    world_ = make_mpi_world(*hosts_, *arena_, {.cancel = &cancel_, .remote = remote});
    std::vector<int> all(static_cast<std::size_t>(world_->size()));
    std::iota(all.begin(), all.end(), 0);
    everyone_ = &world_->make_group(kStateGroup, all);

    if (!session_.tokens.empty()) {  // none: nothing is trained
      share_tokens();
      sampler_.emplace(tokens_, job.model.sequence, job.training.batch, job.run.seed);
    }
    feed_.batch = [this](auto step, auto first, auto count, auto from, auto length, auto* ids,
                         auto* targets) {
      sampler_->fill(step, first, count, {static_cast<std::int32_t>(from), static_cast<std::int32_t>(length)},
                     ids, targets);
    };
    executor_ = std::make_unique<Executor>(
        session_.plan, memory(), *world_, feed_,
        ExecutorOptions{.thread_per_stream = job.run.clock == kPaced || remote != nullptr ||
                                             threads_pay(job.run.streams, *hosts_),
                        .seed = job.run.seed,
                        .progress = &status_.last_instruction});
    if (job.run.clock == kPaced) look_up_durations();
  }

  void look_up_durations() {
    const SupernodeSpec& spec = session_.job.supernode;
    const Topology topology = hosts_of(machine_of(spec), spec.devices);
    for (const Program& program : session_.plan.of_device(world_->rank()).programs)
      durations_.push_back(durations(session_.pace(), program.name, spec, topology, world_->rank()));
  }

  // Only rank 0 needs to see the file.
  void share_tokens() {
    if (hosts_->rank() == 0) tokens_ = read_tokens(session_.tokens);
    std::int64_t n = std::ssize(tokens_);
    MPI_Bcast(&n, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    tokens_.resize(static_cast<std::size_t>(n));
    constexpr std::int64_t kAtOnce = 1 << 28;  // MPI counts with an int
    for (std::int64_t at = 0; at < n; at += kAtOnce)
      MPI_Bcast(tokens_.data() + at, static_cast<int>(std::min(kAtOnce, n - at)), MPI_INT32_T, 0,
                MPI_COMM_WORLD);
  }

  void invoke(const control::Invocation& invocation) {
    status_.last_instruction = -1;
    status_.invocation = invocation.id;
    control::InvocationDone done{invocation.id, {}, {}};
    if (invocation.program == kSaveProgram) {
      save(invocation.step);
    } else if (invocation.program == kLoadProgram) {
      load_state(state(), session_.job.run.resume);
    } else {
      run(invocation, done);
    }
    link_.report(std::move(done));
  }

  void run(const control::Invocation& invocation, control::InvocationDone& done) {
    Scalars scalars;
    scalars.step = invocation.step;
    if (const auto lr = invocation.scalars.find(kLearningRate); lr != invocation.scalars.end())
      scalars.lr = std::get<double>(lr->second);
    Requests requests;
    Samples samples;
    if (are_samples(invocation.data))
      scalars.samples = &(samples = samples_from_bytes(invocation.data));
    else if (!invocation.data.empty())
      scalars.requests = &(requests = requests_from_bytes(invocation.data));
    const bool traced = invocation.scalars.contains(kTraced);
    const auto program = static_cast<std::size_t>(invocation.program);
    const Whereabouts::Stay stay(whereabouts_, session_.plan.of_device(world_->rank()).programs[program],
                                 invocation.step);
    Pace pace;
    const auto dilation = invocation.scalars.find(kDilation);
    const bool paced = dilation != invocation.scalars.end();
    if (paced) pace = {&durations_[program], std::get<double>(dilation->second)};
    const InvocationResult& result = executor_->run(program, scalars, traced, paced ? &pace : nullptr);
    done.outputs = {result.outputs.begin(), result.outputs.end()};
    done.data = to_bytes(result.arrays);
    done.report = to_bytes(result.stats, shift_, traced);
  }

  DeviceMemory memory() { return {*arena_, pool_ ? pool_->part.get() : nullptr, flash_.get()}; }

  // This device's part of the pool, and its file: as much as is planned, and no more.
  void start_tiers() {
    const Role& role = session_.plan.of_device(hosts_->rank());
    if (session_.plan.peak(Tier::kPool).value > 0) {  // made by all together
      std::vector<Bytes> parts;
      for (int d = 0; d < hosts_->topology().size(); ++d)
        parts.push_back(session_.plan.of_device(d).peak(Tier::kPool));
      pool_ = make_mpi_pool(*hosts_, session_.job.supernode.pool, parts, &cancel_);
    }
    if (const Bytes flash = role.peak(Tier::kFlash); flash.value > 0)
      flash_ = std::make_unique<FlashBacking>(session_.run_directory, flash);
  }

  StateContext state() { return {session_.plan, memory(), *world_, *everyone_}; }

  void save(std::int64_t step) {
    const std::string name = format("step-%06lld", static_cast<long long>(step));
    save_state(state(), std::filesystem::path(session_.run_directory) / "checkpoints" / name,
               {step, session_.job.run.seed}, session_.checkpoint_files);
  }

  control::DeviceLink& link_;
  control::DeviceStatus& status_;
  Whereabouts& whereabouts_;
  std::atomic<bool>& cancel_;
  std::int64_t shift_;
  Session session_;
  std::unique_ptr<MpiHosts> hosts_;
  std::optional<Arena> arena_;
  std::unique_ptr<MpiPool> pool_;   // none where the plan uses none,
  std::unique_ptr<Backing> flash_;  // of either
  std::unique_ptr<World> world_;
  Group* everyone_ = nullptr;
  std::vector<std::int32_t> tokens_;
  std::optional<Sampler> sampler_;
  Feed feed_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::vector<Nanos>> durations_;  // by Program, of its instructions; on the paced clock
};

// When the run was aborted, what this device met is a consequence of that: the cause is the run's.
Code cause_of(control::DeviceLink& link, const Error& own) {
  if (!link.aborted()) return own.code();
  try {
    link.next();
  } catch (const Error& cause) {
    return cause.code();
  }
  return own.code();
}

// MPI is not left in order, and mpirun may be gone: nobody else would remove what lies in shared memory.
[[noreturn]] void leave(Code why) {
  control::remove_segments_of_own_job();
  _exit(static_cast<int>(exit_code(why)));
}

// All ranks, as rank 0 alone may know it.
void share(Address& address) {
  broadcast(address.controller);
  broadcast(address.secret);
}

void require_world(int rank, int size) {
  int mpi_rank = 0, mpi_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
  if (mpi_rank != rank || mpi_size != size)
    throw Error(Code::kMpi, "the launcher made this process rank " + std::to_string(rank) + " of " +
                                std::to_string(size) + ", MPI says " + std::to_string(mpi_rank) + " of " +
                                std::to_string(mpi_size))
        .fix("take the mpirun of the Open MPI that hyperrun was built with");
}

// Joins the controller and serves until the run ends. A rank that knows the controller joins before it starts
// MPI, so that one that never gets there is known by name. Does not return when it failed: MPI cannot be left
// in order then.
void serve_controller(Address address, int rank) {
  control::DeviceStatus status;
  Whereabouts whereabouts;
  std::atomic<bool> cancel{false}, started{false};
  control::DeviceLinkOptions options;
  options.rank = rank;
  options.world_size = world_size_from_environment();
  options.version = std::string(version());
  options.handle_signals = true;
  options.status = &status;
  options.place = [&] {
    if (!started) return std::string("starting MPI");
    return whereabouts.text(status.last_instruction.load(std::memory_order_relaxed));
  };
  options.on_abort = [&cancel, &started, rank](const Error& why) {
    cancel = true;
    // What the controller orders it has told itself; only what this device found has a place.
    if (rank == 0 && !why.place().empty()) std::fprintf(stderr, "%s\n", why.what());
    if (!started) leave(why.code());  // the main thread stands in MPI, which does not look up
  };
  std::optional<control::DeviceLink> link;
  const auto join = [&] {
    options.controller = address.controller;
    options.secret = address.secret;
    link.emplace(options);
  };
  try {
    if (!address.controller.empty()) join();
    start_mpi();
    started = true;
    require_world(rank, options.world_size);
    share(address);
    if (!link) join();
    {
      Device device(*link, status, whereabouts, cancel);
      device.serve();
    }
    MPI_Finalize();
    link->close();
  } catch (const Error& e) {
    if (!link) std::fprintf(stderr, "device %d: %s\n", rank, e.what());
    if (link) link->fail(e);
    leave(link ? cause_of(*link, e) : e.code());
  } catch (const std::exception& e) {
    const Error error(Code::kInternal, e.what());
    if (link) link->fail(error);
    leave(error.code());
  }
}

}  // namespace

int run_device(const RunArguments& arguments) {
  const int rank = rank_from_environment();
  init_log("device " + std::to_string(rank));
  Address address{flags().controller, flags().secret};
  std::optional<ForeignController> foreign;
  if (rank == 0 && address.controller.empty()) {
    foreign.emplace(arguments);
    if (!foreign->started()) return foreign->status();
    address = foreign->address();
  }
  serve_controller(std::move(address), rank);
  return foreign ? foreign->wait() : 0;
}

}  // namespace hyperrun
