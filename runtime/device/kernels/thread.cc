#include "runtime/device/kernels/thread.h"

#include <cblas.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/device/kernels/thread.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hyperrun::kernels {
namespace HWY_NAMESPACE {

const char* NameOfTarget() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace hyperrun::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hyperrun::kernels {
namespace {
HWY_EXPORT(NameOfTarget);
}  // namespace

void flush_denormals(bool on) {
#if defined(__x86_64__)
  constexpr unsigned kFtzDaz = 0x8040;
  const unsigned csr = _mm_getcsr();
  _mm_setcsr(on ? csr | kFtzDaz : csr & ~kFtzDaz);
#elif defined(__aarch64__)
  constexpr unsigned long kFz = 1UL << 24;
  unsigned long fpcr = 0;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  fpcr = on ? fpcr | kFz : fpcr & ~kFz;
  asm volatile("msr fpcr, %0" : : "r"(fpcr));
#else
  static_cast<void>(on);
#endif
}

void use_calling_thread_only() { openblas_set_num_threads(1); }

const char* matrix_library() { return openblas_get_config(); }

const char* vector_target() { return HWY_DYNAMIC_DISPATCH(NameOfTarget)(); }

}  // namespace hyperrun::kernels
#endif  // HWY_ONCE
