#include "tools/fasthorovod-bench/worker_messages.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "tools/fasthorovod-bench/pattern.h"

namespace fasthorovod::tools {
namespace {

constexpr std::string_view kErrorWord = "error ";

std::string hexadecimal(const Pattern& pattern) {
  std::string text;
  for (const std::byte byte : pattern) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

core::Error makes_no_sense(std::string_view text) {
  return {core::ErrorCode::kProtocol, fmt::format("the worker said \"{}\"", text.substr(0, 200))};
}

/// Reads a number and takes it away from the text.
template <typename T>
std::optional<T> take_number(std::string_view& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take_letter(std::string_view& text, char letter) {
  if (text.empty() || text.front() != letter) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string worker_run(const Turn& turn, int rank, int size) {
  return fmt::format("run {} {} {} {} {} {} {}", turn.count, core::to_string(turn.type),
                     core::to_string(turn.reduction), turn.warm_up, turn.iterations,
                     hexadecimal(contribution(turn.type, turn.reduction, rank)),
                     hexadecimal(expected_result(turn.type, turn.reduction, size)));
}

std::string worker_step(const StepTurn& turn, const std::vector<Gradient>& gradients,
                        std::uint64_t scale, int rank, int size) {
  constexpr core::DataType kType = core::DataType::kFloat32;
  constexpr core::Reduction kSum = core::Reduction::kSum;
  std::string line =
      fmt::format("step {} {} {} {} {} {} {} ", turn.compute_us, kForward, scale, turn.warm_up,
                  turn.steps, hexadecimal(contribution(kType, kSum, rank)),
                  hexadecimal(expected_result(kType, kSum, size)));
  for (std::size_t at = 0; at < gradients.size(); ++at) {
    line += fmt::format("{}{}:{}", at == 0 ? "" : ",", gradients[at].elements, gradients[at].ready);
  }
  return line;
}

core::Result<std::string> worker_answer(std::string_view line, std::string_view expected) {
  if (line.starts_with(kErrorWord)) {
    return core::Error{core::ErrorCode::kUnavailable, std::string(line.substr(kErrorWord.size()))};
  }
  if (line == expected) return std::string();
  if (!line.starts_with(fmt::format("{} ", expected))) return makes_no_sense(line);
  return std::string(line.substr(expected.size() + 1));
}

core::Result<int> parse_worker_port(std::string_view text) {
  std::string_view rest = text;
  const auto port = take_number<int>(rest);
  if (!port || !rest.empty()) return makes_no_sense(text);
  return *port;
}

core::Result<std::vector<Sample>> parse_worker_samples(std::string_view text, std::size_t count) {
  const std::string_view whole = text;
  std::vector<Sample> samples;
  while (!text.empty()) {
    const auto time = take_number<double>(text);
    const bool colon = take_letter(text, ':');
    const auto wrong = take_number<std::uint64_t>(text);
    if (!time || !colon || !wrong) return makes_no_sense(whole);
    samples.push_back({*time, *wrong});
    if (!text.empty() && !take_letter(text, ' ')) return makes_no_sense(whole);
  }
  if (samples.size() != count) return makes_no_sense(whole);
  return samples;
}

}  // namespace fasthorovod::tools
