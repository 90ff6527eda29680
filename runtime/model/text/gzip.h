// Files compressed by gzip.
#pragma once

#include <string>
#include <string_view>

namespace hyperrun {

bool is_gzip(std::string_view content);

// The content of a gzip file, of all its members. Throws kBadCorpus at `place` if it is damaged or cut short.
std::string gunzip(std::string_view content, const std::string& place);

}  // namespace hyperrun
