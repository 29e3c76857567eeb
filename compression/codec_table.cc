#include "compression/codec_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "compression/codecs/half_codec.h"
#include "compression/codecs/twobit_codec.h"
#include "compression/kernels/twobit_answers.h"
#include "core/nearest_name.h"

namespace fasthorovod::compression {
namespace {

constexpr int kAnyNumber = std::numeric_limits<int>::max();
constexpr std::string_view kThresholds = "a positive, finite number in units of the values";

CodecInfo row(core::CodecId id, std::string_view summary, int most_ranks, const Codec* codec) {
  return {.id = id,
          .name = core::to_string(id),
          .summary = summary,
          .most_ranks = most_ranks,
          .codec = codec};
}

CodecInfo row_with_threshold(core::CodecId id, std::string_view summary, int most_ranks,
                             const Codec* codec) {
  CodecInfo result = row(id, summary, most_ranks, codec);
  result.needs_threshold = true;
  return result;
}

// "none", "twobit:THRESHOLD": as users write it.
std::string usage(const CodecInfo& info) {
  return fmt::format("{}{}", info.name, info.needs_threshold ? ":THRESHOLD" : "");
}

core::Error refused(std::string message) {
  return {core::ErrorCode::kInvalidArgument, std::move(message)};
}

core::Error no_such_codec(std::string_view name) {
  std::vector<std::string_view> names;
  std::string all;
  for (const CodecInfo& info : codec_table()) {
    names.push_back(info.name);
    all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", usage(info), info.summary);
  }
  const std::string_view nearest = core::nearest_name(name, names);
  const std::string hint = nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest);
  return refused(fmt::format("there is no codec \"{}\"{}, there are {}", name, hint, all));
}

core::Result<core::CodecChoice> with_threshold(const CodecInfo& info, std::string_view text) {
  core::CodecChoice choice{.id = info.id};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, choice.threshold);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) {
    return refused(
        fmt::format("the threshold of {} is \"{}\", but must be {}", info.name, text, kThresholds));
  }
  if (auto status = check(choice); !status) return std::move(status).error();
  return choice;
}

}  // namespace

std::span<const CodecInfo> codec_table() {
  using core::CodecId;
  static const HalfCodec fp16(HalfType::kFloat16);
  static const HalfCodec bf16(HalfType::kBfloat16);
  static const TwobitCodec twobit;
  static const CodecInfo table[] = {
      row(CodecId::kNone, "values travel as they are", kAnyNumber, nullptr),
      row(CodecId::kFp16, "IEEE half precision, half the bytes", kAnyNumber, &fp16),
      row(CodecId::kBf16, "bfloat16, half the bytes and the range of float32", kAnyNumber, &bf16),
      row_with_threshold(CodecId::kTwobit,
                         "-threshold, 0 or +threshold, a sixteenth of the bytes to the owner; the "
                         "rest is kept for the next step",
                         kMostTwobitRanks, &twobit),
  };
  static_assert(std::size(table) == std::size(core::kAllCodecs));
  return table;
}

const CodecInfo& codec_info(core::CodecId id) {
  return codec_table()[static_cast<std::size_t>(id)];
}

core::Result<core::CodecId> find_codec(std::string_view name) {
  for (const CodecInfo& info : codec_table()) {
    if (info.name == name) return info.id;
  }
  return no_such_codec(name);
}

core::Result<core::CodecChoice> parse_codec(std::string_view text) {
  const std::size_t colon = text.find(':');
  auto id = find_codec(text.substr(0, colon));
  if (!id) return std::move(id).error();
  const CodecInfo& info = codec_info(*id);
  if (info.needs_threshold) {
    return with_threshold(info, colon == text.npos ? "" : text.substr(colon + 1));
  }
  if (colon == text.npos) return core::CodecChoice{.id = info.id};
  return refused(
      fmt::format("the codec {} takes no threshold, but \"{}\" gives one", info.name, text));
}

core::Status check(const core::CodecChoice& choice) {
  const CodecInfo& info = codec_info(choice.id);
  if (!info.needs_threshold) {
    if (choice.threshold == 0.0F) return {};
    return refused(fmt::format("the codec {} takes no threshold, but {} was given", info.name,
                               choice.threshold));
  }
  if (choice.threshold > 0.0F && std::isfinite(choice.threshold)) return {};
  return refused(fmt::format("the threshold of {} is {}, but must be {}", info.name,
                             choice.threshold, kThresholds));
}

}  // namespace fasthorovod::compression
