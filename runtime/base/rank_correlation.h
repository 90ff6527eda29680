#pragma once

#include <vector>

namespace hyperrun {

// Spearman's: that of the ranks, equal values sharing theirs. 1: both are in the same order, -1: the other
// way round. As many of one as of the other. 0 where all values of one are equal.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace hyperrun
