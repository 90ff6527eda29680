// Reads a table of kernels: what share of the peak kernels of given shapes were measured to reach.
//
//   kernel,pass,shape,share
//   product,forward,rows=4096 in=8192 out=10240,0.6452
//   product,,,0.49                                        any other shape, in any pass
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/kernel_table.h"

namespace hyperrun {

struct BuiltInText {
  std::string_view name, text;
};
// The built-in tables, by file name; generated from proto/profiles when hyperrun is built.
std::vector<BuiltInText> built_in_kernels();

// Lines that begin with # are comments. Throws kBadValue with file:line for a line that is no such row, and
// for a row that is there twice.
std::vector<KernelShare> read_kernels(std::string_view csv, const std::string& path);

}  // namespace hyperrun
