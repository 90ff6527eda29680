#include "runtime/forecast/compiling.h"

#include "runtime/report/status_line.h"

namespace hyperrun {

Compiled compile_telling(const Job& job) {
  StatusLine status;
  status.tell("compiling");
  return compile(job);
}

}  // namespace hyperrun
