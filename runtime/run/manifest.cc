#include "runtime/run/manifest.h"

#include <mpi.h>

#include <array>

#include "runtime/device/kernels/thread.h"
#include "runtime/run/run.h"

namespace hyperrun {

Manifest manifest_of(const Job& job, const RunArguments& arguments, const Recorder& recorder, Nanos started,
                     const control::Outcome* outcome) {
  Manifest m;
  m.job = job.name;
  m.command_line = arguments.command_line;
  m.seed = job.run.seed;
  m.ranks = recorder.ranks();
  m.hosts = recorder.hosts();
  m.start = started;
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> mpi{};
  int length = 0;
  MPI_Get_library_version(mpi.data(), &length);
  m.libraries = {{"mpi", std::string(mpi.data())},
                 {"openblas", kernels::matrix_library()},
                 {"vector target", kernels::vector_target()}};
  m.restarts = recorder.restarts();
  m.goodput = recorder.goodput();
  if (outcome == nullptr) return m;
  m.end = unix_time();
  m.state = outcome->ok() ? "finished" : outcome->signal != 0 ? "interrupted" : "failed";
  m.exit_status = outcome->exit_status();
  m.error = outcome->reason();
  return m;
}

}  // namespace hyperrun
