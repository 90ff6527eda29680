// MPI is started so that one thread at a time may call it (MPI_THREAD_SERIALIZED). The devices of a process
// take turns.
#pragma once

#include <mutex>

namespace hyperrun {

// Held during every call of MPI while several threads of this process may make one.
inline std::mutex& mpi_turn() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace hyperrun
