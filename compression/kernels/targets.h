// The instruction sets kernels are compiled for: all of Highway's, without those that would only
// repeat the code of the next smaller one. Include before any header of Highway.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
