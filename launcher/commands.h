// The subcommands of hyperrun. Each function returns the exit status and throws Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/forecast/check.h"
#include "runtime/forecast/sim.h"
#include "runtime/generate/generate.h"
#include "runtime/run/start.h"

namespace hyperrun {

struct PlanArguments {
  std::string job;
  std::string space = "all";
  std::vector<std::string> only;             // constraints such as "tp=8"; see runtime/plan/constraint.h
  bool compare = false;                      // search the other spaces as well
  bool why = false;                          // simulate every other value of every dimension
  std::int32_t leaders = 8;                  // strategies to simulate
  std::string out;                           // file for the best plan as a job; empty: none
  std::string svg;                           // file for a picture; empty: none
  std::string flags;                         // framework in whose terms the plan is said; empty: none
  bool pareto = false;                       // trade step time against HBM and devices
  std::vector<std::int32_t> pareto_devices;  // numbers of devices to try; empty: around the job's
  bool sensitivity = false;                  // search again for slightly different machines
  std::int32_t ranges = 5;                   // plans to simulate at both ends of each guess of the machine
  bool json = false, csv = false;
  std::int32_t prove = 0;        // ranks that execute plans to scale; 0: no plan is executed
  std::int32_t prove_plans = 6;  // number of plans to execute
};
// Searches the strategies of the job's model, machine and batch. Throws kDoesNotFit if no strategy fits.
// Throws kNotEqual if an executed plan takes another time, or learns other losses, than predicted.
int plan_job(const PlanArguments& arguments);

struct VerifyArguments {
  std::string job;  // may be empty if `random` > 0
  std::int64_t steps = 2;
  int random = 0;  // number of random layouts to verify instead of the job's; no job: of random models
  std::uint64_t seed = 1;  // seed of the first random layout; each further layout takes the next number
};
// Throws kNotEqual if a layout computes something else than one device.
int verify_job(const VerifyArguments& arguments);

struct ValidateArguments {
  std::string profile = "a100_megatron";
  std::string runs;       // a CSV file of runs; empty: the built-in runs
  std::string calibrate;  // file for a profile fitted to the calibration runs; empty: no fit
  bool rows = false, json = false, csv = false;
};
int validate_runs(const ValidateArguments& arguments);

struct CalibrateArguments {
  int devices = 0;      // 0: one for each rank that mpirun has started
  std::string out;      // the profile to write
  double seconds = 20;  // approximate time spent on measuring
};
// Measures this machine with the given number of devices and writes its profile. Starts mpirun itself unless
// the process runs under mpirun already.
int calibrate(const CalibrateArguments& arguments);

struct ImportArguments {
  std::string file;       // a llama2.c model, .bin; or the launch script or configuration of a run
  std::string tokenizer;  // a llama2.c tokenizer, .bin; may be empty
  std::string out;        // the folder to make; of a run the job to write
  // These are for runs alone; RunImport explains them.
  std::string from, model, profile, recipe;
  std::int32_t devices = 0, vocab = 0;  // 0: not given
  std::vector<std::string> variables;   // NAME=VALUE
  std::optional<std::string> arguments;
};
// Converts a llama2.c model to a checkpoint with Hugging Face's file and tensor names.
int import_model(const ImportArguments& arguments);
// Turns the launch script or configuration of another framework into a job, and tells what came of each
// setting.
int import_job(const ImportArguments& arguments);
// Whether the arguments are about a model of llama2.c.
bool names_model(const ImportArguments& arguments);

// Prints the report that a run left in its directory.
int print_report(const std::string& run_directory);

}  // namespace hyperrun
