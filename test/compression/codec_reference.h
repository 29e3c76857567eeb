// What codecs do, one element at a time and without regard for speed, written from their contracts
// and nothing else; and values to try them on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "compression/codec.h"
#include "core/codec_choice.h"

namespace fasthorovod::compression {

using Bytes = std::vector<std::byte>;

/// Encodes; `values` become what encoding leaves of them.
Bytes reference_encode(core::CodecId id, std::vector<float>& values, const CodecSetting& setting);

void reference_add(core::CodecId id, const Bytes& codes, std::vector<float>& sums);

Bytes reference_encode_answer(core::CodecId id, const std::vector<float>& sums,
                              const CodecSetting& setting);

std::vector<float> reference_decode_answer(core::CodecId id, const Bytes& answer,
                                           std::size_t elements, const CodecSetting& setting);

/// For comparisons that tell -0 from 0 and NaN from NaN.
std::vector<std::uint32_t> bits_of(const std::vector<float>& values);

/// Often just at the threshold, zero of either sign, subnormal, huge, infinite or NaN of any bits.
std::vector<float> any_values(std::size_t elements, float threshold, std::mt19937_64& random);

/// Sums that so many ranks' codes can have; some are not finite.
std::vector<float> any_sums(core::CodecId id, std::size_t elements, int ranks,
                            std::mt19937_64& random);

Bytes any_bytes(std::size_t count, std::mt19937_64& random);

}  // namespace fasthorovod::compression
