#include "runtime/report/version.h"

namespace hyperrun {
namespace {
#include "version.inc"
}  // namespace

std::string_view version() { return kVersion; }
std::string_view git_revision() { return kRevision; }

}  // namespace hyperrun
