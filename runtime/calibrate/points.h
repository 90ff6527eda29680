// What is measured of a machine: instructions of many sizes. Each becomes a Program that repeats it, so that
// it runs as any instruction of a job does.
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
  Instr instr;                                            // its operands have sizes, and no places yet
  std::vector<std::pair<std::size_t, std::size_t>> same;  // outputs that lie where an input does
};

// "Gemm m=256 n=256 k=64, bfloat16", "Add n=512 over 6.00 KiB", "all-gather of 64.0 KiB among 4"
std::string words_of(const Point& point, const Mesh& mesh);

// So many devices in axes of prime sizes, the largest first: groups along the last ones have 2, 4, 8, ...
// members.
Mesh mesh_of_devices(int devices);

// All that is measured on this mesh. Collectives only where there are several devices.
std::vector<Point> points_of(const Mesh& mesh);

// Operands of a program lie in these bytes of HBM, one instruction's behind the other's: as in a step, what
// an instruction needs has not been used just before.
inline constexpr Bytes kPointMemory{48 << 20};

// And of the pool, for transfers.
inline constexpr Bytes kPointPool{16 << 20};

// A Program for each point, in their order, which repeats it as often as takes about `nanos`, at least once
// and at most 64 times.
Plan plan_of(const std::vector<Point>& points, const Mesh& mesh, double nanos);

}  // namespace hyperrun
