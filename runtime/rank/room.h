// Checks that this host has room for the devices of a run, before they are started: memory, shared memory for
// their HBM and for the pool, and files on flash. Each process checks again when it starts.
#pragma once

#include <filesystem>
#include <span>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// The part of a run on this host. No devices: it is unknown, and nothing is checked.
struct OnThisHost {
  int devices = 0, processes = 0;
};

// Throws kDoesNotFit with what would fit if these devices, in so many processes of this host, need more
// memory than it has left.
void require_memory(std::span<const Session> sessions, std::span<const int> devices, int processes);
// Checks the same before anything is started, and that shared memory has room for their HBM. If only some
// devices are on this host, assumes those that need the least.
void require_memory(const Job& job, std::span<const Session> sessions, const OnThisHost& here);
// The pool is checked only if all devices of the job are on this host. Throws kDoesNotFit.
void require_room_for_pool(const Job& job, std::span<const Session> sessions, const OnThisHost& here);
// Also throws kUnwritable. If only some devices are on this host, assumes those that need the least.
void require_room_for_flash(const Job& job, std::span<const Session> sessions, const OnThisHost& here,
                            const std::filesystem::path& folder);

// All of these checks, for a run without a run directory that has all devices in `ranks` processes of this
// host. Files on flash go to the folder for temporary files, which is returned.
std::filesystem::path require_room(const Session& session, int ranks);

}  // namespace hyperrun
