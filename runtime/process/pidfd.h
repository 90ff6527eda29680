// <sys/pidfd.h> with C linkage, which glibc 2.36 forgets to declare.
#pragma once

extern "C" {
#include <sys/pidfd.h>
}
