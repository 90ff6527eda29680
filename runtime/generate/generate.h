// hyperrun generate: continues prompts with a trained model, or measures generation on the paced clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hyperrun {

struct GenerateArguments {
  std::string source;      // a job, a run directory, or a checkpoint with its config.json
  std::string checkpoint;  // replaces the job's checkpoint, or the run's last one
  std::vector<std::string> prompts;
  std::string prompt_file;                   // a file of further prompts, one a line
  int devices = 0;                           // for a checkpoint without a job, tensor parallel; 0: one
  std::int32_t tokens = 0;                   // limit for each prompt; 0: the job's, or up to 64 that fit
  std::optional<double> temperature, top_p;  // nullopt: the job's
  std::optional<std::int32_t> top_k;
  std::optional<std::uint64_t> seed;
  int slots = 0, context = 0;            // 0: the job's
  std::string out;                       // file for the results; empty: standard output
  bool resumes = false;                  // goes on with the prompts that have no result in `out` yet
  std::optional<std::int32_t> restarts;  // in a row, without a new text between them; nullopt: the job's
  bool json = false;                     // prints a line of JSON for each prompt
  bool paced = false;  // measures on the paced clock of the job's machine, without a checkpoint
};

// Starts mpirun, loads a checkpoint and continues every prompt. Returns the exit status.
int generate_text(const GenerateArguments& arguments);

// Executes generation passes of a job on its paced clock, without a checkpoint, and compares their times with
// the simulator's. Returns the exit status.
int pace_generation(const GenerateArguments& arguments);

}  // namespace hyperrun
