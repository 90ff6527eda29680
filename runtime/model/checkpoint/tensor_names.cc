#include "runtime/model/checkpoint/tensor_names.h"

#include <algorithm>
#include <array>

namespace hyperrun {
namespace {

constexpr std::array<std::string_view, 4> kWrappers{"_orig_mod", "module", "_fsdp_wrapped_module",
                                                    "_checkpoint_wrapped_module"};
constexpr std::array<std::string_view, 5> kConstants{".attn.bias", ".attn.masked_bias",
                                                     ".rotary_emb.inv_freq", ".rotary_emb.original_inv_freq",
                                                     ".position_ids"};

}  // namespace

std::string without_wrappers(std::string_view name) {
  std::string kept;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (std::ranges::count(kWrappers, part) == 0) {
      if (begin > 0 && !kept.empty()) kept += '.';
      kept += part;
    }
    begin = end + 1;
  }
  return kept;
}

bool is_constant(std::string_view name) {
  return std::ranges::any_of(kConstants, [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace hyperrun
