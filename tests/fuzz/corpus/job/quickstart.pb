

quickstart
64 MiBÀ (@€H€`"

dp

tpdptpsp*
../data/king-james.txt2!ú~j¼t“h?0(:%(
0J
In the beginningPš™™™™™é? (