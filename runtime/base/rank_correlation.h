#pragma once

#include <vector>

namespace hyperrun {

// Spearman's rank correlation of two lists of one length; equal values share their mean rank. 1: the lists
// have the same order; -1: opposite orders; 0 also where all values of one list are equal.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace hyperrun
