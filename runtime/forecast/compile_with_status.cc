#include "runtime/forecast/compile_with_status.h"

#include "runtime/report/status_line.h"

namespace hyperrun {

Compiled compile_with_status(const Job& job) {
  StatusLine status;
  status.tell("compiling");
  return compile(job);
}

}  // namespace hyperrun
