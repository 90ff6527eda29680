// What the user can ask for. Each returns the exit status and throws Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hyperrun {

struct RunArguments {
  std::string job;
  std::string hostfile;                  // for mpirun; empty: this host
  std::vector<std::string> mpirun_args;  // further ones
  std::string directory;                 // instead of run.directory
  std::string resume;                    // instead of run.resume
  bool quiet = false;                    // no progress
  std::vector<std::string> command_line;
};

// hyperrun JOB, not under mpirun: starts mpirun and is the controller of its ranks.
int run_job(const RunArguments& arguments);

// hyperrun JOB, under mpirun or srun: one device of the run. Rank 0 starts the controller.
int run_device(const RunArguments& arguments);

// Started by rank 0 of a foreign mpirun: the controller. `world`: ranks that mpirun has started.
int run_controller(const RunArguments& arguments, int world);

struct CheckArguments {
  std::string job;
  std::string resume;  // as of a run
  std::string memory;  // a picture to write of HBM over the step, .svg; or empty
};
int check_job(const CheckArguments& arguments);

struct GenerateArguments {
  std::string source;      // a job, a run directory, or a checkpoint with its config.json
  std::string checkpoint;  // instead of the job's, or the run's last
  std::vector<std::string> prompts;
  std::string prompt_file;                   // more of them, one a line
  int devices = 0;                           // of a checkpoint alone: tensor parallel; 0: one
  std::int32_t tokens = 0;                   // at most, of each; 0: the job's, or up to 64 that fit
  std::optional<double> temperature, top_p;  // none: the job's
  std::optional<std::int32_t> top_k;
  std::optional<std::uint64_t> seed;
  int slots = 0, context = 0;  // 0: the job's
  bool json = false;           // a line of JSON for each prompt
  bool paced = false;          // on the clock of the job's machine, without a checkpoint
};
// Starts mpirun, loads a checkpoint and lets every prompt grow.
int generate_text(const GenerateArguments& arguments);
// The same of a job without a checkpoint, on its paced clock: what passes take beside the simulator.
int pace_generation(const GenerateArguments& arguments);

struct SimArguments {
  std::string job;
  std::string trace;         // a .pftrace to write, or empty
  std::string chakra;        // a prefix of the files to write, or empty
  std::vector<int> devices;  // in the traces; none: all
  bool json = false, csv = false;
  int explain = 0;                // so many of the costliest instructions
  std::vector<std::string> slow;  // "7:1.3": device 7 computes 1.3 times as long
  double jitter = 0;              // of computations; see SimOptions
  std::uint64_t seed = 1;         // of the jitter
  bool generation = false;        // its passes, in place of a training step
  std::string lengths;            // "LEAST:MOST" tokens of completions, of a job with rewards; empty: all
  bool no_range = false;          // without what the time is where the profile's guesses are others
};
int simulate_job(const SimArguments& arguments);
int simulate_generation(const SimArguments& arguments);

struct PlanArguments {
  std::string job;
  std::string space = "all";
  std::vector<std::string> only;             // "tp=8": what is settled; see runtime/plan/constraint.h
  bool compare = false;                      // search the other spaces as well
  bool why = false;                          // every value of every dimension
  std::int32_t leaders = 8;                  // that are simulated
  std::string out;                           // the job of the best, or empty
  std::string svg;                           // a picture to write, or empty
  bool pareto = false;                       // step time against HBM and devices
  std::vector<std::int32_t> pareto_devices;  // numbers of them; none: around the job's
  bool sensitivity = false;                  // the best of machines that are a little different
  std::int32_t ranges = 5;                   // plans that are simulated with other guesses of the machine
  bool json = false, csv = false;
  std::int32_t prove = 0;        // ranks on which plans are executed to scale; 0: none are
  std::int32_t prove_plans = 6;  // so many
};
// Searches the strategies of the job's model, machine and batch. Throws kDoesNotFit where nothing fits, and
// kNotEqual where plans that are executed take other times or learn something else than they should.
int plan_job(const PlanArguments& arguments);

struct VerifyArguments {
  std::string job;  // may be empty where `random` is not 0
  std::int64_t steps = 2;
  int random = 0;          // random layouts to verify instead of the job's; without a job of random models
  std::uint64_t seed = 1;  // of the first of them; the next has the next
};
// Throws kNotEqual when a layout computes something else than one device.
int verify_job(const VerifyArguments& arguments);

struct ValidateArguments {
  std::string profile = "a100_megatron";
  std::string runs;       // a CSV file of runs; empty: those that are built in
  std::string calibrate;  // a profile to write, fitted to the runs that are there to calibrate; or empty
  bool rows = false, json = false, csv = false;
};
int validate_runs(const ValidateArguments& arguments);

struct CalibrateArguments {
  int devices = 0;      // 0: as many ranks as mpirun has started
  std::string out;      // the profile to write
  double seconds = 20;  // of measuring, about
};
// Measures this machine with so many devices and writes its profile. Starts mpirun unless it is under one.
int calibrate(const CalibrateArguments& arguments);

struct ImportArguments {
  std::string file;       // of llama2.c, .bin
  std::string tokenizer;  // of llama2.c, .bin; or empty
  std::string out;        // the folder to make
};
// Makes a checkpoint under Hugging Face's names of another program's model.
int import_model(const ImportArguments& arguments);

int print_report(const std::string& run_directory);

}  // namespace hyperrun
