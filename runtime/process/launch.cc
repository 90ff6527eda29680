#include "runtime/process/launch.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun::process {
namespace {

// mpi_yield_when_idle: ranks may outnumber cores, and a barrier of eight spinning ranks takes 300 times as
// long. osc ^ucx: with Debian's default, hosts joined by TCP have no one-sided windows at all. SLURM_OVERLAP:
// in an allocation mpirun starts its daemons by srun, which else waits for the cores that a daemon of a lost
// run still has on a node that is gone.
constexpr std::array kDefaults{
    std::pair{"OMPI_MCA_mpi_yield_when_idle", "1"},
    std::pair{"OMPI_MCA_osc", "^ucx"},
    std::pair{"SLURM_OVERLAP", "1"},
};

int number(const char* text) {
  int value = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), value);
  return value;
}

// Variables that choose the kernels of OpenBLAS, or ours instead. A rank on another host that did not get
// them would compute other last bits.
std::vector<std::string> openblas_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (variable.starts_with("OPENBLAS_")) names.emplace_back(variable.substr(0, variable.find('=')));
  }
  return names;
}

}  // namespace

LaunchCommand launch_command(const LaunchSpec& spec) {
  HR_CHECK(spec.ranks > 0 && !spec.program.empty());
  LaunchCommand command;
  // Ranks may outnumber cores, and each has threads that need all cores.
  command.argv = {spec.mpirun, "--oversubscribe", "--bind-to", "none", "-np", std::to_string(spec.ranks)};
  auto& argv = command.argv;
  if (!spec.hostfile.empty()) argv.insert(argv.end(), {"--hostfile", spec.hostfile});
  if (spec.ranks_of_a_host > 0)
    argv.insert(argv.end(), {"--map-by", fmt::format("ppr:{}:node", spec.ranks_of_a_host)});
  // The secret is passed by the variable's name only: everybody can see arguments.
  if (!spec.controller.empty())
    for (const char* name : {"HYPERRUN_CONTROLLER", "HYPERRUN_SECRET"}) argv.insert(argv.end(), {"-x", name});
  if (!spec.fault.empty()) argv.insert(argv.end(), {"-x", "HYPERRUN_FAULT"});
  if (std::getenv("HYPERRUN_LOG") != nullptr) argv.insert(argv.end(), {"-x", "HYPERRUN_LOG"});
  for (const std::string& name : openblas_variables()) argv.insert(argv.end(), {"-x", name});
  argv.insert(argv.end(), spec.mpirun_args.begin(), spec.mpirun_args.end());
  argv.insert(argv.end(), spec.program.begin(), spec.program.end());

  auto& environment = command.environment;
  if (!spec.controller.empty())
    environment = {{"HYPERRUN_CONTROLLER", spec.controller}, {"HYPERRUN_SECRET", spec.secret}};
  if (!spec.fault.empty()) environment.emplace_back("HYPERRUN_FAULT", spec.fault);
  for (const auto& [key, value] : kDefaults)
    if (std::getenv(key) == nullptr) environment.emplace_back(key, value);
  if (spec.root) {
    environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  return command;
}

Launcher detect_launcher(const GetEnv& env) {
  if (env("OMPI_COMM_WORLD_SIZE") != nullptr) return Launcher::kOpenMpi;
  if (env("PMIX_RANK") != nullptr) return Launcher::kPmix;
  // SLURM_NTASKS alone does not mean copies of us: sbatch and salloc set it for the allocation, where
  // starting mpirun is right. Only a job step has copies.
  const char* tasks = env("SLURM_STEP_NUM_TASKS");
  if (tasks == nullptr && env("SLURM_STEP_ID") != nullptr) tasks = env("SLURM_NTASKS");
  if (number(tasks) > 1 || number(env("SLURM_PROCID")) > 0)
    throw Error(Code::kMpi, "srun started several copies that cannot find each other")
        .fix("srun --mpi=pmix, or call hyperrun once from the batch script and let it start mpirun");
  return Launcher::kNone;
}

Launcher detect_launcher() {
  return detect_launcher([](const char* name) { return std::getenv(name); });
}

void set_mpi_defaults() {
  for (const auto& [key, value] : kDefaults) setenv(key, value, 0);
}

}  // namespace hyperrun::process
