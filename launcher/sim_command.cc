#include "launcher/commands.h"

namespace hyperrun {

int simulate_job(const SimArguments&) { return 0; }

}  // namespace hyperrun
