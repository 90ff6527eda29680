// A limit on the size of the files that this process writes, while the object lives.
#pragma once

#include <sys/resource.h>

#include "runtime/base/file_size_limit.h"

namespace hyperrun {

class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    survive_file_size_limit();
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() { setrlimit(RLIMIT_FSIZE, &before_); }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_{};
};

}  // namespace hyperrun
