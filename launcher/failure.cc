#include "launcher/failure.h"

#include <cstdio>

namespace hyperrun {

void tell_failure(const Error& cause, const std::function<void()>& finish) {
  try {
    finish();
  } catch (const Error& also) {  // the cause of both, most likely, and told below
    if (also.code() != cause.code()) std::fprintf(stderr, "%s\n", also.what());
  }
  std::fprintf(stderr, "%s\n", cause.what());
}

}  // namespace hyperrun
