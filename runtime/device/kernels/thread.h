// The settings of a thread that computes.
#pragma once

namespace hyperrun::kernels {

// Makes denormal inputs and results count as zero on the calling thread (FTZ and DAZ on x86, FZ on Arm;
// nothing elsewhere). A denormal costs a hundred cycles and more, and gradients and Adam's moments decay
// through them. This is a part of the arithmetic: a run is bitwise repeatable only if every compute thread
// sets it alike.
void flush_denormals(bool on);

// Makes OpenBLAS compute on the caller's thread alone, for the whole process: the streams of the emulated
// NPUs are the only parallelism. Call it once, before the first kernel.
void use_calling_thread_only();

// OpenBLAS' version, options and the core type that it chose; the bits of a run depend on it.
const char* matrix_library();

// Name of the vector instruction set that the kernels run on ("AVX3", "AVX2", ...), for the manifest.
const char* vector_target();

}  // namespace hyperrun::kernels
