// Removal of what a killed Open MPI leaves behind: shared-memory segments named after the job, and the
// session directory named after mpirun's pid. Only a job's own are removed, told by their names.
#pragma once

#include <filesystem>
#include <string>

namespace hyperrun::process {

// Removes "vader_segment.HOST.UID.JOB.N" and "osc_sm.HOST.JOB.RANK.N" with JOB in hex; mpi_job is
// DeviceInfo::mpi_job, decimal. The first carry messages. The others are windows, which Open MPI removes
// itself once all ranks have opened them: a rank that is killed before leaves one.
void remove_segments(const std::string& mpi_job, const std::filesystem::path& shm = "/dev/shm");
void remove_segments_of_own_job();

// Removes "TMP/ompi.HOST.UID/pid.PID".
void remove_session(int mpirun_pid, const std::filesystem::path& tmp);

}  // namespace hyperrun::process
