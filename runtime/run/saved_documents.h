// The files of a checkpoint beside its weights: the model's and the tokenizer's. A run writes back what it
// was given, also the files that it does not read itself, so that other programs load its checkpoints as they
// load what it began with.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "runtime/ir/job.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

// Writes the run's tokenizer.json: the file from which the tokenizer was read, byte for byte, if it is in
// that form.
void save_tokenizer(const Job& job, const Tokenizer& tokenizer, const std::filesystem::path& path);

// The files of each checkpoint of the job, by name. `saved_tokenizer` is what save_tokenizer() wrote. Throws
// kBadCheckpoint if a file that belongs to them cannot be read.
std::map<std::string, std::string> checkpoint_documents(const Job& job, const Tokenizer& tokenizer,
                                                        const std::filesystem::path& saved_tokenizer);

}  // namespace hyperrun
