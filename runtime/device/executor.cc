#include "runtime/device/executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>

#include "collectives/group.h"
#include "runtime/base/error.h"
#include "runtime/device/kernels/thread.h"
#include "runtime/device/stream_workers.h"

namespace hyperrun {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

struct Loaded {
  PreparedProgram prepared;
  LiveBytes live;
  PeakUse most;
};

// A collective that is under way.
struct Started {
  Request* request;
  const PreparedInstr* instr;
  std::size_t index;
};

}  // namespace

class Executor::Impl {
 public:
  Impl(const Plan& plan, Arena& arena, World& world, const Feed& feed, const ExecutorOptions& options)
      : plan_(plan),
        arena_(arena),
        world_(world),
        groups_(world, plan, arena.rank()),
        options_(options),
        context_{plan.mesh, arena.rank(), options.seed, feed} {
    for (const Program& p : plan.programs)
      programs_.push_back({prepare(p, arena, groups_), LiveBytes(p), peak_use(p)});
    std::size_t longest = 0;
    for (const Program& p : plan.programs) longest = std::max(longest, p.instrs.size());
    result_.stats.spans.reserve(longest);
    result_.stats.hbm.reserve(2 * longest + 2);
    under_way_.reserve(longest);
    kernels::flush_denormals(true);
    if (options.thread_per_stream) threads_.emplace([] { kernels::flush_denormals(true); });
  }

  const InvocationResult& run(std::size_t index, const Scalars& scalars, bool traced) {
    loaded_ = &programs_[index];
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

  // --- one thread -----------------------------------------------------------------------------------

  void run_in_order() {
    auto& instrs = loaded_->prepared.instrs;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      const PreparedInstr& p = instrs[i];
      for (const Event& e : p.instr->waits)
        if (e.stream == StreamKind::kComm) finish_comm(e.seq);
      begin(i);
      if (p.group != nullptr) {
        if (p.after_comm > 0) finish_comm(p.after_comm);
        result_.stats.spans[i].begin = now();
        under_way_.push_back({p.group->start(p.args), &p, i});
      } else {
        compute(i);
        end(i);
      }
      move_comm_on();
    }
    finish_comm(std::numeric_limits<std::int32_t>::max());
  }

  // Everything of the comm stream up to `seq`; the time is exposed.
  void finish_comm(std::int32_t seq) {
    if (under_way_.empty() || under_way_.front().instr->instr->seq > seq) return;
    const std::int64_t from = now();
    std::size_t n = 0;
    for (; n < under_way_.size() && under_way_[n].instr->instr->seq <= seq; ++n) {
      world_.wait(*under_way_[n].request);
      comm_done(under_way_[n]);
    }
    under_way_.erase(under_way_.begin(), under_way_.begin() + static_cast<std::ptrdiff_t>(n));
    result_.stats.exposed += Nanos(now() - from);
  }

  void move_comm_on() {
    if (under_way_.empty()) return;
    const std::int64_t from = now();
    world_.progress();
    std::size_t n = 0;
    for (; n < under_way_.size() && under_way_[n].request->done(); ++n) comm_done(under_way_[n]);
    under_way_.erase(under_way_.begin(), under_way_.begin() + static_cast<std::ptrdiff_t>(n));
    result_.stats.exposed += Nanos(now() - from);
  }

  void comm_done(const Started& started) {
    Span& span = result_.stats.spans[started.index];
    span.begin = std::max(span.begin, last_comm_end_);
    span.end = last_comm_end_ = now();
    count_traffic(*started.instr, *started.request);
    end(started.index);
  }

  // --- a thread a stream ------------------------------------------------------------------------------

  void run_threads() {
    for (auto& done : finished_) done.store(0, std::memory_order_relaxed);
    stop_.store(false);
    threads_->run([this](StreamKind stream) {
      try {
        run_stream(stream);
      } catch (...) {
        stop_.store(true);
        for (auto& done : finished_) done.fetch_add(kStopped), done.notify_all();
        throw;
      }
    });
  }

  void run_stream(StreamKind stream) {
    auto& instrs = loaded_->prepared.instrs;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      const PreparedInstr& p = instrs[i];
      if (p.instr->stream != stream) continue;
      for (const Event& e : p.instr->waits) wait_for(e, stream);
      begin(i);
      if (p.group != nullptr) {
        result_.stats.spans[i].begin = now();
        Request* request = p.group->start(p.args);
        world_.wait(*request);
        result_.stats.spans[i].end = now();
        count_traffic(p, *request);
      } else {
        compute(i);
      }
      end(i);
      finished_[at(stream)].store(p.instr->seq, std::memory_order_release);
      finished_[at(stream)].notify_all();
    }
  }

  void wait_for(const Event& e, StreamKind waiting) {
    auto& done = finished_[at(e.stream)];
    std::int32_t seen = done.load(std::memory_order_acquire);
    if (seen < e.seq) {
      const std::int64_t from = now();
      while ((seen = done.load(std::memory_order_acquire)) < e.seq)
        done.wait(seen, std::memory_order_acquire);
      if (e.stream == StreamKind::kComm && (waiting == StreamKind::kCube || waiting == StreamKind::kVector))
        exposed_[at(waiting)] += now() - from;
    }
    if (stop_.load()) throw Error(Code::kDeviceLost, "another stream of this device has stopped");
  }

  // --- both -------------------------------------------------------------------------------------------

  void compute(std::size_t i) {
    const PreparedInstr& p = loaded_->prepared.instrs[i];
    Span& span = result_.stats.spans[i];
    span.begin = now();
    run_kernel(*p.instr, p.at, *scalars_, context_);
    span.end = now();
  }

  void begin(std::size_t i) {
    const std::unique_lock lock = guard();
    loaded_->live.begin(i);
    for (const Use& use : touches_[i])
      arena_.touch(program()[use.operand.buffer].offset + use.operand.offset, use.operand.bytes);
    if (traced_) result_.stats.hbm.emplace_back(now(), loaded_->live.total().value);
  }

  void end(std::size_t i) {
    const std::unique_lock lock = guard();
    loaded_->live.end(i);
    if (options_.progress != nullptr)
      options_.progress->store(static_cast<std::int64_t>(i), std::memory_order_relaxed);
    if (traced_) result_.stats.hbm.emplace_back(now(), loaded_->live.total().value);
  }

  std::unique_lock<std::mutex> guard() {
    return threads_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

  void count_traffic(const PreparedInstr& p, const Request& request) {
    Traffic& t = result_.stats.traffic[p.traffic];
    ++t.count;
    t.bytes += Bytes(request.wire_bytes);
  }

  void reset_stats() {
    InvocationStats& s = result_.stats;
    s.busy = {};
    s.exposed = Nanos(0);
    s.spans.assign(program().instrs.size(), Span{});
    s.hbm.clear();
    if (touched_program_ != loaded_) {  // first run after another program
      touched_program_ = loaded_;
      touches_.clear();
      for (const Instr& i : program().instrs) touches_.push_back(uses(i));
      s.traffic.clear();
      for (const TrafficKind& kind : loaded_->prepared.traffic) s.traffic.push_back({kind, 0, Bytes(0)});
    }
    for (Traffic& t : s.traffic) t.count = 0, t.bytes = Bytes(0);
    exposed_ = {};
    last_comm_end_ = 0;
    under_way_.clear();
    loaded_->live.begin_program();
  }

  void finish_stats() {
    InvocationStats& s = result_.stats;
    for (std::size_t i = 0; i < s.spans.size(); ++i)
      s.busy[at(program().instrs[i].stream)] += Nanos(s.spans[i].end - s.spans[i].begin);
    if (threads_) s.exposed = Nanos(*std::max_element(exposed_.begin(), exposed_.end()));
    s.high_water = arena_.high_water();
    s.live_peak = loaded_->most.bytes;
    s.live_at_peak = loaded_->most.by_category;
  }

  void read_outputs() {
    result_.outputs.clear();
    for (const Output& o : program().outputs) {
      const std::byte* data =
          arena_.view(program()[o.operand.buffer].offset + o.operand.offset, o.operand.bytes).data();
      const std::int64_t n = o.operand.bytes.value / size_of(o.dtype);
      for (std::int64_t i = 0; i < n; ++i) {
        const double value = o.dtype == DType::kI32
                                 ? reinterpret_cast<const std::int32_t*>(data)[i]
                                 : static_cast<double>(reinterpret_cast<const float*>(data)[i]);
        result_.outputs.emplace_back(n == 1 ? o.name : o.name + "." + std::to_string(i), value);
      }
    }
  }

  static constexpr std::int32_t kStopped = 1 << 28;

  const Plan& plan_;
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
  bool traced_ = false;
  InvocationResult result_;
  std::vector<Started> under_way_;
  std::int64_t last_comm_end_ = 0;

  std::array<std::atomic<std::int32_t>, kStreams> finished_{};
  std::array<std::int64_t, kStreams> exposed_{};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
};

Executor::Executor(const Plan& plan, Arena& arena, World& world, const Feed& feed,
                   const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(plan, arena, world, feed, options)) {}
Executor::~Executor() = default;

const InvocationResult& Executor::run(std::size_t index, const Scalars& scalars, bool traced) {
  return impl_->run(index, scalars, traced);
}

}  // namespace hyperrun
