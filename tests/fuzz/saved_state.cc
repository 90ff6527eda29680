// The states of a run in a checkpoint: hyperrun_state.json, programs_state.json, trainer_state.json (folder.h
// has the form of an input). What is taken is written and read again.
#include "runtime/device/trainer_state.h"
#include "runtime/run/programs_state.h"
#include "tests/fuzz/folder.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Folder folder;
  folder.fill(fuzz::files_of(fuzz::text_of(data, size)),
              {kTrainerStateFile, kProgramsStateFile, "trainer_state.json"});
  fuzz::take_or_refuse_at([&] {
    TrainerState state = read_trainer_state(folder.path());
    if (!state.seed) state.seed = 0;  // what is written always has one
    folder.put(kTrainerStateFile, to_json(state));
    fuzz::expect(read_trainer_state(folder.path()) == state, "another state once written");
  });
  fuzz::take_or_refuse_at([&] { steps_of_foreign_trainer(folder.path()); });
  fuzz::take_or_refuse_at([&] {
    const std::optional<ProgramsState> state = read_programs_state(folder.path());
    if (!state) return;
    folder.put(kProgramsStateFile, to_json(*state));
    fuzz::expect(read_programs_state(folder.path()) == state, "another state of programs once written");
  });
  return 0;
}
