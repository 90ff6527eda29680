// The points at which a machine is measured: instructions of many sizes. Each becomes a Program that repeats
// it, so that it runs like any instruction of a job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

enum class PointClass : std::uint8_t { kElementwise, kProduct, kAttention, kCollective, kTransfer };
inline constexpr std::size_t kPointClasses = 5;
std::string_view name(PointClass c);  // "elementwise work"

struct Point {
  PointClass cls = PointClass::kElementwise;
  Instr instr;                                            // its operands have sizes, but no offsets yet
  std::vector<std::pair<std::size_t, std::size_t>> same;  // (output, input) that share their place
};

// "Gemm m=256 n=256 k=64, bfloat16", "Add n=512 over 6.00 KiB", "all-gather of 64.0 KiB among 4"
std::string describe(const Point& point, const Mesh& mesh);

// A mesh of `devices` with axes of prime sizes, the largest first: groups along the last axes have 2, 4, 8,
// ... members.
Mesh mesh_of_devices(int devices);

// All points of this mesh. Collectives are among them only if there are several devices.
std::vector<Point> points_of(const Mesh& mesh);

// The bytes of HBM for the operands of a program. The operands of one repetition follow those of the one
// before: like in a step, an instruction's operands have not just been used.
inline constexpr Bytes kPointMemory{48 << 20};

// The bytes of the pool for transfers.
inline constexpr Bytes kPointPool{16 << 20};

// A plan with a Program for each point, in their order. It repeats the point for about `nanos`, at least once
// and at most 64 times.
Plan plan_of(const std::vector<Point>& points, const Mesh& mesh, double nanos);

}  // namespace hyperrun
