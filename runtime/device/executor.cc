#include "runtime/device/executor.h"

#include <fmt/core.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <thread>

#include "collectives/group.h"
#include "memory/remote_memory.h"
#include "runtime/base/error.h"
#include "runtime/device/box_lines.h"
#include "runtime/device/exposed.h"
#include "runtime/device/kernels/thread.h"
#include "runtime/device/kernels/tile_rows.h"
#include "runtime/device/stream_workers.h"
#include "runtime/ir/row_counts.h"
#include "runtime/ir/under_way.h"

namespace hyperrun {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Asks the kernel to wake sleepers on time; by default it may be late by 50 us.
void be_punctual() { prctl(PR_SET_TIMERSLACK, 1); }

void sleep_until(std::int64_t moment) {
  const timespec at{.tv_sec = moment / 1'000'000'000, .tv_nsec = moment % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

struct Loaded {
  PreparedProgram prepared;
  LiveBytes live;
  UnderWayByKind under_way;
  std::vector<bool> reported;  // by output: true if this device reports it
  std::size_t arrays = 0;      // number of outputs that are arrays

  Loaded(const Program& program, PreparedProgram p, const Plan& plan, int device)
      : prepared(std::move(p)), live(program), under_way(program, prepared.traffic) {
    for (const Output& o : program.outputs) {
      reported.push_back(reports(o, plan, device));
      arrays += o.shape.empty() ? 0 : 1;
    }
  }
};

// A collective under way.
struct Started {
  Request* request;
  const PreparedInstr* instr;
  std::size_t index;
  bool gathers = false;    // if paced: `request` is the barrier at which its group meets
  std::int64_t until = 0;  // if paced: its earliest end
};

constexpr std::array kCommunicating{StreamKind::kComm, StreamKind::kSend, StreamKind::kRecv};

// Number of times that the communicating thread looks again before it sleeps.
constexpr int kYields = 100;

}  // namespace

class Executor::Impl {
 public:
  Impl(const Plan& plan, const DeviceMemory& memory, const PlanWorld& world, const Feed& feed,
       const ExecutorOptions& options)
      : memory_(memory),
        arena_(memory.hbm),
        world_(world.world()),
        groups_(world, plan),
        options_(options),
        context_{plan.mesh, world.device(), options.seed, feed} {
    const Role& role = plan.of_device(world.device());
    for (const Program& p : role.programs)
      programs_.emplace_back(p, prepare(p, memory_, groups_), plan, world.device());
    std::size_t longest = 0;
    for (const Program& p : role.programs) longest = std::max(longest, p.instrs.size());
    result_.stats.spans.reserve(longest);
    for (Curve& curve : result_.stats.live) curve.reserve(2 * longest + 2);
    for (auto& list : under_way_) list.reserve(longest);
    kernels::flush_denormals(true);
    if (options.thread_per_stream)
      threads_.emplace([] {
        kernels::flush_denormals(true);
        be_punctual();
      });
  }

  const InvocationResult& run(std::size_t index, const Scalars& scalars, bool traced, const Pace* pace) {
    loaded_ = &programs_[index];
    pace_ = pace;
    HR_CHECK(pace == nullptr || (threads_ && pace->durations->size() == program().instrs.size()),
             "a pace is for every instruction, and for threads");
    scalars_ = &scalars;
    traced_ = traced;
    reset_stats();
    result_.stats.begin = now();
    if (threads_)
      run_threads();
    else
      run_in_order();
    result_.stats.end = now();
    finish_stats();
    read_outputs();
    return result_;
  }

 private:
  const Program& program() const { return *loaded_->prepared.program; }

  // --- One thread -------------------------------------------------------------------------------------

  void run_in_order() {
    auto& instrs = loaded_->prepared.instrs;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      const PreparedInstr& p = instrs[i];
      for (const Event& e : p.instr->waits)
        if (communicates(e.stream)) finish_comm(e.stream, e.seq);
      if (p.group != nullptr) {
        if (p.after_comm > 0) finish_comm(p.instr->stream, p.after_comm);
        start_comm(i);
      } else {
        begin(i);
        compute(i);
        end(i);
      }
      move_comm_on();
    }
    for (const StreamKind stream : kCommunicating)
      finish_comm(stream, std::numeric_limits<std::int32_t>::max());
  }

  // Finishes the stream's collectives up to `seq`; the time is exposed.
  void finish_comm(StreamKind stream, std::int32_t seq) {
    std::vector<Started>& list = under_way_[at(stream)];
    if (list.empty() || list.front().instr->instr->seq > seq) return;
    const std::int64_t from = now();
    std::size_t n = 0;
    for (; n < list.size() && list[n].instr->instr->seq <= seq; ++n) {
      world_.wait(*list[n].request);
      comm_done(list[n]);
    }
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n));
    result_.stats.exposed += Nanos(now() - from);
  }

  void move_comm_on() {
    if (nothing_under_way()) return;
    const std::int64_t from = now();
    progress_comm();
    result_.stats.exposed += Nanos(now() - from);
  }

  // --- Communication -----------------------------------------------------------------------------------

  void start_comm(std::size_t i) {
    PreparedInstr& p = loaded_->prepared.instrs[i];
    begin(i);
    result_.stats.spans[i].begin = now();
    const bool gathers =
        pace_ != nullptr && p.args.kind != Collective::kSend && p.args.kind != Collective::kRecv;
    Request* request = gathers ? p.group->start({.kind = Collective::kBarrier}) : start_real(p);
    under_way_[at(p.instr->stream)].push_back({request, &p, i, gathers});
  }

  static Request* start_real(PreparedInstr& p) {
    if (!p.counts.empty()) count_rows(p);
    return p.group->start(p.args);
  }

  // Computes the elements that an all-to-all-v sends to and receives from each member. The numbers of rows
  // lie in HBM.
  static void count_rows(PreparedInstr& p) {
    const auto& c = std::get<instr::Collective>(p.instr->op);
    const std::size_t members = p.counts.size() / 4;
    const std::span<std::int64_t> room = p.counts;
    const auto part = [&](std::size_t n) { return room.subspan(n * members, members); };
    const kernels::RowTile tile = kernel_tile(p.instr->in[0].tile);
    const auto blocks = [&](std::size_t in, std::size_t first) {
      kernels::blocks_of_tile(tile, c.experts, reinterpret_cast<const std::int32_t*>(p.at.in[in]), c.inner,
                              part(first), part(first + 1));
    };
    blocks(1, 0);  // to or from the experts of each member
    blocks(2, 2);  // from or to the tokens of each member
    const std::size_t sent = c.back ? 2 : 0;
    p.args.send_counts = part(sent), p.args.send_starts = part(sent + 1);
    p.args.recv_counts = part(2 - sent), p.args.recv_starts = part(3 - sent);
    require_room(p);
  }

  // Refuses rows beyond the end of the output. Without a capacity there is room for all; with one, and none
  // dropped, only for an even load.
  static void require_room(const PreparedInstr& p) {
    std::int64_t end = 0;
    for (std::size_t m = 0; m < p.args.recv_counts.size(); ++m)
      end = std::max(end, p.args.recv_starts[m] + p.args.recv_counts[m]);
    const auto& c = std::get<instr::Collective>(p.instr->op);
    const Operand& out = p.instr->out[0];
    const std::int64_t room = out.bytes.value / static_cast<std::int64_t>(size_of(c.dtype));
    if (end <= room) return;
    throw Error(Code::kDoesNotFit,
                fmt::format("{} experts of a device got {} rows, its memory has room for {}", c.experts,
                            end / c.inner, room / c.inner))
        .at("model.experts.capacity.factor")
        .legal(fmt::format("{:.2g} times the factor, or more, for this load",
                           static_cast<double>(end) / static_cast<double>(room)))
        .fix("raise the factor, or leave the capacity out: then memory has room for every load");
  }

  bool nothing_under_way() const {
    return std::all_of(kCommunicating.begin(), kCommunicating.end(),
                       [&](StreamKind s) { return under_way_[at(s)].empty(); });
  }

  // Ends the finished collectives of each stream, in order. Returns true if any ended.
  bool progress_comm() {
    world_.progress();
    bool any = false;
    met_ = false;
    for (const StreamKind stream : kCommunicating) {
      std::vector<Started>& list = under_way_[at(stream)];
      std::size_t n = 0;
      for (; n < list.size() && has_ended(list[n]); ++n) comm_done(list[n]);
      list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n));
      any = any || n > 0;
    }
    return any || met_;
  }

  // True if the collective has ended. A paced group that has met starts the real collective, which lasts its
  // time. A message has met its peer when it has arrived.
  bool has_ended(Started& started) {
    if (!started.request->done()) return false;
    if (pace_ == nullptr) return true;
    if (started.until == 0) started.until = now() + paced(started.index);
    if (started.gathers) {
      started.gathers = false;
      started.request = start_real(loaded_->prepared.instrs[started.index]);
      met_ = true;  // the real work must start at once, to fit into its time
      return false;
    }
    return now() >= started.until;
  }

  std::int64_t paced(std::size_t i) const {
    return std::llround(static_cast<double>((*pace_->durations)[i].value) * pace_->dilation);
  }

  void comm_done(const Started& started) {
    const Instr& instr = *started.instr->instr;
    Span& span = result_.stats.spans[started.index];
    std::int64_t& last_end = last_comm_end_[at(instr.stream)];
    span.begin = std::max(span.begin, last_end);
    span.end = last_end = now();
    count_traffic(*started.instr, Bytes(started.request->wire_bytes));
    end(started.index);
    finished_[at(instr.stream)].store(instr.seq, std::memory_order_release);
    if (threads_) finished_[at(instr.stream)].notify_all();
  }

  // --- A thread a stream -------------------------------------------------------------------------------

  void run_threads() {
    for (auto& done : finished_) done.store(0, std::memory_order_relaxed);
    stop_.store(false);
    threads_->run([this](StreamKind stream) { run_stream(stream); }, [this] { stop_streams(); });
  }

  void stop_streams() {
    stop_.store(true);
    for (auto& done : finished_) done.fetch_add(kStopped), done.notify_all();
    world_.wake();
  }

  void run_stream(StreamKind stream) {
    if (stream == StreamKind::kComm &&
        (loaded_->prepared.has_messages || pace_ != nullptr || !world_.remotes().empty()))
      return run_communication();
    auto& instrs = loaded_->prepared.instrs;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      const PreparedInstr& p = instrs[i];
      if (p.instr->stream != stream) continue;
      for (const Event& e : p.instr->waits) wait_for(e);
      if (p.group != nullptr) {
        start_comm(i);
        world_.wait(*under_way_[at(stream)].front().request);
        comm_done(under_way_[at(stream)].front());
        under_way_[at(stream)].clear();
        continue;
      }
      begin(i);
      compute(i);
      end(i);
      finished_[at(stream)].store(p.instr->seq, std::memory_order_release);
      finished_[at(stream)].notify_all();
      world_.wake();
    }
  }

  // Runs the streams that communicate, side by side in one thread. An instruction begins as soon as it may,
  // whatever an earlier message still waits for. With memory on other hosts the loop goes on until the last
  // stream has ended: transfers of this device and of others need it.
  void run_communication() {
    const RemoteMemory::Owners owners(world_.remotes());
    const auto& order = loaded_->prepared.streams;
    std::array<std::size_t, kStreams> started{};
    const auto ended = [&] {
      return nothing_under_way() &&
             std::ranges::all_of(kCommunicating,
                                 [&](StreamKind s) { return started[at(s)] == order[at(s)].size(); }) &&
             (world_.remotes().empty() || all_have_ended());
    };
    const auto look = [&] { return communicate(started) || ended(); };
    for (int idle = 0; !ended();) {
      if (look()) {
        idle = 0;
      } else if (++idle < kYields) {
        std::this_thread::yield();
      } else {
        world_.sleep_unless(until_the_next_ends(), look);
      }
      look_for_stop();
      world_.check_cancelled();
    }
    look_for_stop();  // a stopped stream counts as ended
  }

  // Returns true if anything has moved on. With a pace a stream is in order: an instruction begins when the
  // one before has ended.
  bool communicate(std::array<std::size_t, kStreams>& started) {
    const auto& order = loaded_->prepared.streams;
    bool moved = false;
    for (const StreamKind stream : kCommunicating) {
      std::size_t& next = started[at(stream)];
      while (next < order[at(stream)].size() && (pace_ == nullptr || under_way_[at(stream)].empty()) &&
             may_start(loaded_->prepared.instrs[order[at(stream)][next]])) {
        start_comm(order[at(stream)][next++]);
        moved = true;
      }
    }
    return progress_comm() || moved;
  }

  bool all_have_ended() const {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const auto& order = loaded_->prepared.streams[s];
      if (!order.empty() &&
          finished_[s].load(std::memory_order_acquire) < loaded_->prepared.instrs[order.back()].instr->seq)
        return false;
    }
    return true;
  }

  // Time to the next end of a paced collective, in ns.
  std::int64_t until_the_next_ends() const {
    std::int64_t first = kLongestRest;
    for (const auto& list : under_way_)
      if (!list.empty() && list.front().until > 0) first = std::min(first, list.front().until - now());
    return std::max<std::int64_t>(first, 1);
  }

  bool may_start(const PreparedInstr& p) const {
    const auto has_finished = [&](StreamKind s, std::int32_t seq) {
      return finished_[at(s)].load(std::memory_order_acquire) >= seq;
    };
    return has_finished(p.instr->stream, p.after_comm) &&
           std::all_of(p.instr->waits.begin(), p.instr->waits.end(),
                       [&](const Event& e) { return has_finished(e.stream, e.seq); });
  }

  void wait_for(const Event& e) {
    auto& done = finished_[at(e.stream)];
    for (std::int32_t seen = done.load(std::memory_order_acquire); seen < e.seq;
         seen = done.load(std::memory_order_acquire))
      done.wait(seen, std::memory_order_acquire);
    look_for_stop();
  }

  void look_for_stop() const {
    if (stop_.load()) throw Error(Code::kDeviceLost, "another stream of this device has stopped");
  }

  // --- Both --------------------------------------------------------------------------------------------

  void compute(std::size_t i) {
    const PreparedInstr& p = loaded_->prepared.instrs[i];
    Span& span = result_.stats.spans[i];
    span.begin = now();
    if (p.beyond != nullptr)
      move(p);
    else if (p.peers != nullptr)
      fetch(p);
    else if (p.blocks != nullptr)
      compute_blocks(*p.blocks);
    else
      run_kernel(*p.instr, p.at, *scalars_, context_);
    if (pace_ != nullptr) sleep_until(span.begin + paced(i));
    span.end = now();
  }

  void compute_blocks(const PreparedBlocks& blocks) {
    for (std::size_t b = 0; b < blocks.at.size(); ++b)
      run_kernel(b == 0 ? blocks.first : blocks.other, blocks.at[b], *scalars_, context_);
  }

  // Bytes that are really moved. A transfer of rows of experts moves as many rows as the counts say; the
  // counts stay valid until it has ended.
  static Bytes executed_bytes(const PreparedInstr& p) {
    const std::int64_t row = row_of_transfer(p.instr->op);
    if (row == 0) return p.instr->in[0].bytes;
    const auto* counts = reinterpret_cast<const std::int32_t*>(p.at.in[1]);
    const auto n = static_cast<std::ptrdiff_t>(p.instr->in[1].bytes.value / size_of(DType::kI32));
    return Bytes(row * std::accumulate(counts, counts + n, std::int64_t{0}));
  }

  static void move(const PreparedInstr& p) {
    const auto bytes = static_cast<std::size_t>(executed_bytes(p).value);
    if (p.at.out[0] != nullptr)
      p.beyond->read(p.offset, {p.at.out[0], bytes});
    else
      p.beyond->write(p.offset, {p.at.in[0], bytes});
  }

  // Fetches from another host, one line of the box after the other.
  void fetch(const PreparedInstr& p) const {
    const auto& box = std::get<instr::Fetch>(p.instr->op);
    const std::int64_t element = size_of(p.instr->out[0].dtype),
                       from = box.offset + scalars_->slot * box.slot;
    each_line(std::span(box.size), box.from, box.to, [&](auto there, auto here, auto n) {
      p.peers->read(box.from_rank, Bytes(from + element * there),
                    {p.at.out[0] + element * here, static_cast<std::size_t>(element * n)});
    });
  }

  void begin(std::size_t i) {
    const std::unique_lock lock = guard();
    loaded_->live.begin(i);
    for (const Use& use : touches_[i])
      if (program()[use.operand.buffer].tier == Tier::kHbm)
        arena_.touch(program()[use.operand.buffer].offset + use.operand.offset, use.operand.bytes);
    if (traced_) record_live(result_.stats.live, now(), loaded_->live);
  }

  void end(std::size_t i) {
    const std::unique_lock lock = guard();
    const PreparedInstr& p = loaded_->prepared.instrs[i];
    if (p.beyond != nullptr) count_traffic(p, executed_bytes(p));
    if (options_.observer) options_.observer(program(), i, loaded_->prepared.instrs[i].at);
    loaded_->live.end(i);
    if (options_.progress != nullptr)
      options_.progress->store(static_cast<std::int64_t>(i), std::memory_order_relaxed);
    if (traced_) record_live(result_.stats.live, now(), loaded_->live);
  }

  std::unique_lock<std::mutex> guard() {
    return threads_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

  void count_traffic(const PreparedInstr& p, Bytes bytes) {
    Traffic& t = result_.stats.traffic[p.traffic];
    ++t.count;
    t.bytes += bytes;
  }

  void reset_stats() {
    InvocationStats& s = result_.stats;
    s.busy = {};
    s.exposed = Nanos(0);
    s.spans.assign(program().instrs.size(), Span{});
    for (Curve& curve : s.live) curve.clear();
    if (touched_program_ != loaded_) {  // this is the first run after another program
      touched_program_ = loaded_;
      touches_.clear();
      for (const Instr& i : program().instrs) touches_.push_back(uses(i));
      s.traffic.clear();
      for (const TrafficKind& kind : loaded_->prepared.traffic) s.traffic.push_back({kind, 0, Bytes(0)});
    }
    for (Traffic& t : s.traffic) t.count = 0, t.bytes = t.elsewhere = Bytes(0);
    elsewhere_before_ = elsewhere();
    last_comm_end_ = {};
    for (auto& list : under_way_) list.clear();
    loaded_->live.begin_program();
  }

  void finish_stats() {
    InvocationStats& s = result_.stats;
    for (std::size_t i = 0; i < s.spans.size(); ++i)
      s.busy[at(program().instrs[i].stream)] += Nanos(s.spans[i].end - s.spans[i].begin);
    if (threads_) {
      s.exposed = exposed_communication(s.spans, loaded_->prepared.streams);
      s.under_way = loaded_->under_way.measure(s.spans);
    }
    s.high_water[0] = arena_.high_water();
    for (const Tier tier : {Tier::kPool, Tier::kFlash})
      if (const Backing* backing = memory_.find(tier)) s.high_water[index_of(tier)] = backing->high_water();
    count_elsewhere(s.traffic);
    s.live_peak = loaded_->live.peak().bytes;
    s.live_at_peak = loaded_->live.peak().by_category;
  }

  Elsewhere elsewhere() const { return memory_.pool == nullptr ? Elsewhere{} : memory_.pool->elsewhere(); }

  void count_elsewhere(std::vector<Traffic>& traffic) const {
    const Elsewhere now = elsewhere();
    const TrafficKind fetched = transfer_kind(instr::Prefetch{.from = Tier::kPool}),
                      stored = transfer_kind(instr::Store{.to = Tier::kPool});
    for (Traffic& t : traffic) {
      if (t.kind == fetched) t.elsewhere = now.read - elsewhere_before_.read;
      if (t.kind == stored) t.elsewhere = now.written - elsewhere_before_.written;
    }
  }

  std::span<const std::byte> content(const Output& o) const {
    return arena_.view(program()[o.operand.buffer].offset + o.operand.offset, o.operand.bytes);
  }

  void read_outputs() {
    result_.outputs.clear();
    result_.arrays.resize(loaded_->arrays);
    std::size_t array = 0;
    for (std::size_t i = 0; i < program().outputs.size(); ++i) {
      const Output& o = program().outputs[i];
      const std::span<const std::byte> data = content(o);
      if (o.shape.empty()) {
        HR_CHECK(o.dtype == DType::kF32, o.name);
        result_.outputs.emplace_back(o.name, *reinterpret_cast<const float*>(data.data()));
        continue;
      }
      OutputPart& part = result_.arrays[array++];
      part.name = o.name;
      part.reported = loaded_->reported[i];
      part.bytes.assign(data.begin(), data.end());
    }
  }

  static constexpr std::int32_t kStopped = 1 << 28;
  static constexpr std::int64_t kLongestRest = 1'000'000'000;

  const DeviceMemory memory_;
  Arena& arena_;
  World& world_;
  Groups groups_;
  ExecutorOptions options_;
  KernelContext context_;
  std::vector<Loaded> programs_;
  std::optional<StreamWorkers> threads_;

  Loaded* loaded_ = nullptr;
  const Loaded* touched_program_ = nullptr;
  std::vector<std::vector<Use>> touches_;
  const Scalars* scalars_ = nullptr;
  const Pace* pace_ = nullptr;
  bool met_ = false;  // true if a paced group has met since the last look
  bool traced_ = false;
  InvocationResult result_;
  Elsewhere elsewhere_before_;
  std::array<std::vector<Started>, kStreams> under_way_;
  std::array<std::int64_t, kStreams> last_comm_end_{};

  std::array<std::atomic<std::int32_t>, kStreams> finished_{};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
};

Executor::Executor(const Plan& plan, const DeviceMemory& memory, const PlanWorld& world, const Feed& feed,
                   const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(plan, memory, world, feed, options)) {}
Executor::~Executor() = default;

const InvocationResult& Executor::run(std::size_t index, const Scalars& scalars, bool traced,
                                      const Pace* pace) {
  return impl_->run(index, scalars, traced, pace);
}

}  // namespace hyperrun
