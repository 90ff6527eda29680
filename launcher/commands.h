// What the user can ask for. Each returns the exit status and throws Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/forecast/check.h"
#include "runtime/forecast/sim.h"
#include "runtime/run/generate.h"
#include "runtime/run/start.h"

namespace hyperrun {

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
