// Names of tensors in the checkpoints of other programs.
#pragma once

#include <string>
#include <string_view>

namespace hyperrun {

// The name without the parts that PyTorch's wrappers put into it: "_orig_mod." of torch.compile, "module." of
// DistributedDataParallel, "_fsdp_wrapped_module." and "_checkpoint_wrapped_module.", in any order and depth.
std::string without_wrappers(std::string_view name);

// True for tensors that are no weights: masks, frequencies and positions that older versions of Hugging
// Face's models save.
bool is_constant(std::string_view name);

}  // namespace hyperrun
