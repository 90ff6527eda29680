#include "runtime/calibrate/points.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/compile/lower_operator.h"
#include "runtime/device/footprint/scratch.h"
#include "runtime/ir/describe_instr.h"

namespace hyperrun {
namespace {

// The elements of an operand. It has the point's data type unless `type` is set.
struct Size {
  std::int64_t n;
  std::optional<DType> type{};
  Size(std::int64_t elements) : n(elements) {}
  Size(std::int64_t elements, DType own) : n(elements), type(own) {}
};
using Sizes = std::vector<Size>;
using Same = std::vector<std::pair<std::size_t, std::size_t>>;

constexpr std::int64_t kAlignment = 64;
constexpr int kMostRepeats = 64;
constexpr double kEpsilon = 1e-6;

// The buffers of each Program. Nothing is written to kNumbers, so all ids of tokens are 0.
constexpr BufferId kMemory(0), kNumbers(1), kPool(2);
constexpr Bytes kMemoryBytes = kPointMemory - Bytes(64 << 10);

// Collects points. All operands of a point have one data type, except those that are always float32.
class Points {
 public:
  explicit Points(const Mesh& mesh) : mesh_(mesh) {}

  std::vector<Point> take() && { return std::move(points_); }

  void products() {
    for (const auto& [m, n] : {std::pair{8, 8}, {16, 16}, {128, 128}, {256, 512}})
      for (const int k : {16, 64, 192, 512}) product(false, true, m, n, k, DType::kF32);
    product(false, true, 512, 704, 256, DType::kF32);   // a layer, forward
    product(false, false, 512, 256, 704, DType::kF32);  // the gradient of its input
    product(true, false, 704, 256, 512, DType::kF32);   // the gradient of its weights
    product(false, true, 256, 2048, 256, DType::kF32);  // the head
    product(true, false, 2048, 256, 256, DType::kF32);
    for (const int k : {16, 64, 192, 512}) product(false, true, 256, 256, k, DType::kBF16);
    product(false, true, 512, 704, 256, DType::kBF16);
    product(true, false, 704, 256, 512, DType::kBF16);
  }

  void attention() {
    for (const std::int64_t seq : {32, 64, 128, 256, 512}) attention(seq, true);
    for (const std::int64_t seq : {64, 256}) attention(seq, false);
  }

  void attention(std::int64_t seq, bool causal) {
    const std::int64_t heads = 4, dim = seq > 128 ? 64 : 32, q = seq * heads * dim, lse = seq * heads;
    const auto shape = [&](auto op) {
      op.batch = 1, op.seq = seq, op.kv_heads = heads, op.group = 1, op.head_dim = op.value_dim = dim;
      op.causal = causal;
      return op;
    };
    add(PointClass::kAttention, shape(instr::Attention{}), {q, q, q}, {q, lse});
    add(PointClass::kAttention, shape(instr::AttentionGrad{}), {q, q, q, q, lse, q}, {q, q, q});
  }

  // Elementwise work of a step, in tensors of some KiB to some MiB.
  void elementwise() {
    for (const std::int64_t rows : {8, 64, 512}) {
      for (const std::int64_t width : {64, 384}) {
        const std::int64_t n = rows * width;
        work(instr::Add{.n = n}, {n, n}, {n});
        work(instr::Norm{.rows = rows, .width = width, .whole = width, .eps = kEpsilon}, {n, width, rows},
             {n});
        work(
            instr::NormGrad{
                .accumulate = true, .rows = rows, .width = width, .whole = width, .eps = kEpsilon},
            {n, n, width, rows, rows}, {n, width});
        work(instr::SwiGlu{.n = n}, {n, n}, {n});
        work(instr::SwiGluGrad{.n = n}, {n, n, n}, {n, n});
        work(instr::Gelu{.n = n}, {n}, {n});
        work(instr::GeluGrad{.n = n}, {n, n}, {n});
        work(instr::Rope{.batch = 1, .seq = rows, .heads = width / 64, .head_dim = 64, .turned = 64},
             {n, rows * 64}, {n});
      }
    }
    for (const std::int64_t n : {1 << 10, 1 << 14, 1 << 18, 1 << 20}) {
      work(instr::AdamW{.n = n, .beta1 = 0.9, .beta2 = 0.95, .eps = kEpsilon}, {n, n, n, n, 1}, {n, n, n},
           {{0, 0}, {1, 2}, {2, 3}});
      work(instr::Accumulate{.accumulate = true, .n = n}, {n}, {n});
      work(instr::SumSquares{}, {n}, {1});
    }
    for (const std::int64_t rows : {64, 512}) {
      const std::int64_t width = 1024, n = rows * width;
      work(instr::SoftmaxStats{.rows = rows, .width = width}, {n, {rows, DType::kI32}}, {n, rows, rows, rows},
           {{0, 0}});
      work(instr::CrossEntropyGrad{.rows = rows, .width = width}, {n, rows, rows, rows, {rows, DType::kI32}},
           {n}, {{0, 0}});
    }
    work(instr::Add{.n = 1}, {1, 1}, {1});
  }

  void transfers() {
    for (const std::int64_t bytes : {1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 23}) {
      transfer(instr::Prefetch{Tier::kPool, bytes}, StreamKind::kDmaIn, kPool, kMemory);
      transfer(instr::Store{Tier::kPool, bytes}, StreamKind::kDmaOut, kMemory, kPool);
    }
  }

  void collectives() {
    for (std::size_t first = mesh_.axes.size(); first-- > 0;) {
      AxisList axes;
      for (std::size_t a = first; a < mesh_.axes.size(); ++a) axes.push_back(static_cast<AxisId>(a));
      if (mesh_.size(axes) > 1)
        for (const std::int64_t bytes : {8, 1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22, 1 << 24})
          collectives_of(axes, bytes / size_of(DType::kF32));
    }
  }

 private:
  void add(PointClass cls, InstrOp op, const Sizes& in, const Sizes& out, Same same = {},
           DType type = DType::kF32) {
    Point p{cls, {}, std::move(same)};
    p.instr.op = std::move(op);
    p.instr.stream = stream_of(p.instr.op);
    for (const Size& size : in) p.instr.in.push_back(operand(size, type));
    for (const Size& size : out) p.instr.out.push_back(operand(size, type));
    if (const Bytes bytes = scratch_bytes(p.instr); bytes.value > 0) p.instr.scratch = {kMemory, {}, bytes};
    points_.push_back(std::move(p));
  }

  void transfer(auto op, StreamKind stream, BufferId from, BufferId to) {
    Point p{PointClass::kTransfer, {}, {}};
    p.instr.op = op;
    p.instr.stream = stream;
    p.instr.in = {{from, {}, Bytes(op.bytes)}};
    p.instr.out = {{to, {}, Bytes(op.bytes)}};
    points_.push_back(std::move(p));
  }

  static Operand operand(const Size& size, DType type) {
    const DType own = size.type.value_or(type);
    return {own == DType::kI32 ? kNumbers : kMemory, {}, Bytes(size.n * size_of(own)), own};
  }

  void product(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, DType type) {
    add(PointClass::kProduct, instr::Gemm{.trans_a = trans_a, .trans_b = trans_b, .m = m, .n = n, .k = k},
        {m * k, k * n}, {m * n}, {}, type);
  }

  void work(InstrOp op, const Sizes& in, const Sizes& out, Same same = {}) {
    add(PointClass::kElementwise, std::move(op), in, out, std::move(same));
  }

  // Collectives of tensors of n elements, or the next number that the group divides.
  void collectives_of(const AxisList& axes, std::int64_t n) {
    using instr::CollectiveKind;
    const std::int64_t p = mesh_.size(axes), part = (n + p - 1) / p;
    const auto collective = [&](CollectiveKind kind, std::int64_t inner) {
      return instr::Collective{.kind = kind, .axes = axes, .inner = inner};
    };
    add(PointClass::kCollective, collective(CollectiveKind::kAllReduce, n), {n}, {n}, {{0, 0}});
    if (n < p) return;
    add(PointClass::kCollective, collective(CollectiveKind::kReduceScatter, part), {p * part}, {part});
    add(PointClass::kCollective, collective(CollectiveKind::kAllGather, part), {part}, {p * part});
    add(PointClass::kCollective, collective(CollectiveKind::kAllToAll, part), {p * part}, {p * part});
  }

  const Mesh& mesh_;
  std::vector<Point> points_;
};

// Gives operands their offsets, one behind the other; at the end of the memory it starts again.
class Places {
 public:
  explicit Places(const Point& point) : point_(point) {
    for_each([&](Operand& o) { footprint_ += padded(o.bytes); }, copy_);
    HR_CHECK(footprint_ <= room_, "a point fits into the memory for points");
  }

  Instr next() {
    if (at_ + footprint_ > room_) at_ = Bytes(0);
    Instr instr = point_.instr;
    for_each(
        [&](Operand& o) {
          if (o.buffer == kNumbers) return;
          o.offset = at_;
          at_ += padded(o.bytes);
        },
        instr);
    for (const auto& [out, in] : point_.same) instr.out[out].offset = instr.in[in].offset;
    return instr;
  }

 private:
  static Bytes padded(Bytes b) { return Bytes((b.value + kAlignment - 1) / kAlignment * kAlignment); }

  template <class F>
  void for_each(F f, Instr& instr) const {
    for (Operand& o : instr.in) f(o);
    for (std::size_t i = 0; i < instr.out.size(); ++i)
      if (std::ranges::none_of(point_.same, [&](const auto& s) { return s.first == i; })) f(instr.out[i]);
    if (instr.scratch.buffer.valid()) f(instr.scratch);
  }

  const Point& point_;
  Instr copy_ = point_.instr;
  const Bytes room_ = point_.cls == PointClass::kTransfer ? kPointPool : kMemoryBytes;
  Bytes footprint_{}, at_{};
};

// A guess of a point's time, which only decides how often the instruction is repeated.
double guessed_nanos(const Point& point, const Mesh& mesh) {
  const Work w = work(point.instr, mesh);
  return 2000 + static_cast<double>(w.flops.value) / 20 + static_cast<double>(w.hbm.value) / 5;
}

Program program_of(const Point& point, const Mesh& mesh, double nanos) {
  Program p;
  p.name = describe(point, mesh);
  p.mesh = mesh;
  p.buffers = {
      {.name = "memory", .bytes = kMemoryBytes, .state = true},
      {.name = "numbers", .bytes = kPointMemory - kMemoryBytes, .state = true, .offset = kMemoryBytes},
      {.name = "pool", .bytes = kPointPool, .tier = Tier::kPool, .state = true}};
  p.origins = {p.name};
  p.peak[index_of(Tier::kHbm)] = kPointMemory;
  p.peak[index_of(Tier::kPool)] = kPointPool;
  Places places(point);
  const int repeats = std::clamp(static_cast<int>(nanos / guessed_nanos(point, mesh)), 1, kMostRepeats);
  for (int i = 0; i < repeats; ++i) {
    Instr instr = places.next();
    instr.seq = i + 1;
    instr.origin = 0;
    // Communication waits for the one before it, like in a step that needs each result first.
    if (communicates(instr.stream) && i > 0) instr.waits = {{instr.stream, i}};
    p.instrs.push_back(std::move(instr));
  }
  return p;
}

}  // namespace

std::string_view name(PointClass c) {
  static constexpr std::array<std::string_view, kPointClasses> kNames{
      "elementwise work", "matrix products", "attention", "collectives", "transfers"};
  return kNames[static_cast<std::size_t>(c)];
}

std::string describe(const Point& point, const Mesh& mesh) {
  if (const auto* c = std::get_if<instr::Collective>(&point.instr.op)) {
    const Bytes most = std::max(point.instr.in[0].bytes, point.instr.out[0].bytes);
    return fmt::format("{} of {} among {}", name(c->kind), to_string(most), mesh.size(c->axes));
  }
  std::string words = describe(point.instr.op, mesh);
  if (point.cls == PointClass::kTransfer) return words;
  if (point.instr.in.front().dtype == DType::kBF16) words += ", bfloat16";
  if (point.cls == PointClass::kElementwise) words += " over " + to_string(work(point.instr, mesh).hbm);
  return words;
}

Mesh mesh_of_devices(int devices) {
  Mesh mesh;
  for (int p = 2, rest = devices; rest > 1; ++p)
    for (; rest % p == 0; rest /= p) mesh.axes.insert(mesh.axes.begin(), {"", p});
  if (mesh.axes.empty()) mesh.axes.push_back({"", 1});
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) mesh.axes[a].name = fmt::format("x{}", a);
  return mesh;
}

std::vector<Point> points_of(const Mesh& mesh) {
  Points points(mesh);
  points.elementwise();
  points.products();
  points.attention();
  points.collectives();
  points.transfers();
  return std::move(points).take();
}

Plan plan_of(const std::vector<Point>& points, const Mesh& mesh, double nanos) {
  Plan plan{mesh, {}, {Role{}}};
  for (const Point& point : points) plan.roles[0].programs.push_back(program_of(point, mesh, nanos));
  return plan;
}

}  // namespace hyperrun
