// hyperrun generate: prompts go on, by a trained model or on the paced clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hyperrun {

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

}  // namespace hyperrun
