// The memory of this host.
#pragma once

#include <filesystem>

#include "runtime/base/units.h"

namespace hyperrun {

Bytes host_memory();         // in all
Bytes free_shared_memory();  // free room in /dev/shm

// The memory that this process can have without taking it from others: the host's, or what is left within the
// limit of its control group, as in a container. Unlimited if the system does not say.
Bytes available_memory();

// The memory left within the limit of a control group (cgroup v2 or v1), by the files in its folder;
// unlimited without a limit. Pages of files that the kernel can drop count as left.
Bytes left_in_group(const std::filesystem::path& folder);
// The least of a group and all groups that it lies in, down from `root`. Folders that are not there, as
// outside of a container's own groups, have no limit.
Bytes left_in_groups(const std::filesystem::path& root, const std::filesystem::path& path);

}  // namespace hyperrun
