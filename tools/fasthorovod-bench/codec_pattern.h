// The patterns of all-reduces of float32 with a codec (pattern.h has those without): values that
// the codec brings as they are, so that results can be checked bit by bit. Pure.
#pragma once

#include "core/codec_choice.h"
#include "core/reduction.h"
#include "tools/fasthorovod-bench/pattern.h"

namespace fasthorovod::tools {

/// What `rank` contributes: small integers, for twobit -threshold, 0 and +threshold.
Pattern coded_contribution(const core::CodecChoice& codec, int rank);

/// What every rank gets when `size` ranks contribute; the reduction is a sum or an average.
Pattern coded_result(const core::CodecChoice& codec, core::Reduction reduction, int size);

}  // namespace fasthorovod::tools
