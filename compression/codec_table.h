// All codecs, in the order of their ids: what tests, benches, --help and the Python names are made
// from.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compression/codec.h"
#include "core/codec_choice.h"
#include "core/result.h"

namespace fasthorovod::compression {

struct CodecInfo {
  core::CodecId id = core::CodecId::kNone;
  std::string_view name;
  std::string_view summary;      // one line for --help and documents
  bool needs_threshold = false;  // it has no default
  int most_ranks = 0;            // whose codes can be added
  const Codec* codec = nullptr;  // null for none, whose values travel as they are
};

std::span<const CodecInfo> codec_table();

/// The row of an id.
const CodecInfo& codec_info(core::CodecId id);

/// The codec of that name; the error lists the table.
core::Result<core::CodecId> find_codec(std::string_view name);

/// "fp16" or "twobit:0.5" (a threshold in units of the values), as users write it on a command
/// line. An error lists the table, or what a threshold may be.
core::Result<core::CodecChoice> parse_codec(std::string_view text);

/// Whether a choice can be: kInvalidArgument says what was given and what is allowed (a threshold
/// that is positive and finite, and only where the codec has one).
core::Status check(const core::CodecChoice& choice);

}  // namespace fasthorovod::compression
